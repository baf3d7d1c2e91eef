/** One document into the index, as an event has left it. */
import type { Ambient } from '../ambient.js';
import type { EventLog, RecordedEvent } from '../log/port.js';
import { DocumentDamaged } from './document-errors.js';
import { documentEventOf, documentIdOf } from './document-events.js';
import type { PassagesIndex } from './passages-index.js';
import { recordedPassages } from './recorded-passages.js';

export interface IntakeOptions {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly ambient: Pick<Ambient, 'sha256'>;
  /** Whose vectors the index takes from the log; null: it computes them. */
  readonly model: string | null;
  /** Told of each document that lacks vectors of the model, perhaps again: it cannot be found. */
  readonly onIncomplete: (documentId: string) => void;
  readonly onFault: (error: unknown) => void;
}

/**
 * Puts the document in the place of what was found of it before, or takes it away. A damaged one cannot be found; the
 * others go on. Throws what the log and the index throw.
 */
export async function takeInDocument(
  index: PassagesIndex,
  recorded: RecordedEvent,
  options: IntakeOptions,
): Promise<void> {
  try {
    await replace(index, recorded, options);
  } catch (error) {
    if (!(error instanceof DocumentDamaged)) throw error;
    options.onFault(error);
    await index.write({ added: [], removed: [documentOf(recorded)], checkpoint: recorded.position });
  }
}

async function replace(
  index: PassagesIndex,
  recorded: RecordedEvent,
  { log, ambient, model, onIncomplete }: IntakeOptions,
): Promise<void> {
  const document = documentOf(recorded);
  const event = documentEventOf(recorded);
  let removed: readonly string[] = [document];
  let [found, wanted] = [0, 0];
  if (event.type === 'DocumentIngested') {
    const span = { from: event.data.since, to: event.seq };
    wanted = event.data.chunks;
    for await (const added of recordedPassages(document, span, { log, sha256: ambient.sha256, model })) {
      await index.write({ added, removed, checkpoint: null });
      removed = [];
      found += added.length;
    }
  }
  const { position: checkpoint } = recorded;
  if (found >= wanted) return await index.write({ added: [], removed, checkpoint });
  await index.write({ added: [], removed: [document], incomplete: [document], checkpoint });
  onIncomplete(document);
}

function documentOf({ stream }: RecordedEvent): string {
  return documentIdOf(stream) ?? '';
}
