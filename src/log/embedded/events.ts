/** Events as they come from the worker, given the port's shape. */
import { flatMetadata } from '../flat-metadata.js';
import { textIn } from './cells.js';
import type { Page } from './messages.js';
import { NUMBERS_PER_EVENT, TEXTS_PER_EVENT } from './messages.js';
import { positionOf } from './position.js';
import type { RecordedEvent } from '../port.js';

/** The events on a page, in its order. */
export function eventsOn({ texts, numbers }: Page): readonly RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (let text = 0, number = 0; text < texts.length; text += TEXTS_PER_EVENT, number += NUMBERS_PER_EVENT) {
    events.push({
      stream: textIn(texts, text),
      id: textIn(texts, text + 1),
      type: textIn(texts, text + 2),
      data: textIn(texts, text + 3),
      metadata: flatMetadata(textIn(texts, text + 4)),
      position: positionOf(numbers[number] ?? 0),
      revision: numbers[number + 1] ?? 0,
    });
  }
  return events;
}
