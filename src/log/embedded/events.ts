/** Events as they come from the worker, given the port's shape. */
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
      metadata: metadataOf(textIn(texts, text + 4)),
      position: positionOf(numbers[number] ?? 0),
      revision: numbers[number + 1] ?? 0,
    });
  }
  return events;
}

/** Damaged metadata read as none: the event then has no hash, and the chain names it; other events go on. */
function metadataOf(json: string): Readonly<Record<string, string>> {
  try {
    const metadata: unknown = JSON.parse(json);
    return isFlat(metadata) ? metadata : {};
  } catch {
    return {};
  }
}

function isFlat(metadata: unknown): metadata is Readonly<Record<string, string>> {
  if (typeof metadata !== 'object' || metadata === null) return false;
  return Object.values(metadata).every((value) => typeof value === 'string');
}
