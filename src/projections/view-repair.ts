/** Rebuilds stored rows that cannot be read from the log. */
import { blueprintAfter, blueprintStream } from '../blueprint/events.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { RunCorrupt } from '../run/errors.js';
import type { Blueprint } from '../generated/schemas.js';
import { DocumentCorrupt } from '../documents/errors.js';
import type { DocumentRecord } from '../documents/events.js';
import { documentRecordOf } from '../documents/events.js';
import { documentStatusOf } from '../documents/events.js';
import type { EventLog } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import type { RunReader } from './run-reader.js';
import type { RunSummary } from './run-summary.js';
import { summaryOf } from './run-summary.js';

/** Each by the id of its row; null when the log has no valid record, and the row is left out. */
export interface ViewRepair {
  run(id: string): Promise<RunSummary | null>;
  blueprint(id: string): Promise<Blueprint | null>;
  document(id: string): Promise<DocumentRecord | null>;
}

export interface ViewRepairDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly reader: Pick<RunReader, 'fold'>;
  /** Called once per row. */
  readonly onFault: (error: unknown) => void;
}

/** Most rows remembered as reported; beyond, they may be reported again. */
const MAX_REPORTED = 1_000;

const CORRUPTIONS = [RunCorrupt, BlueprintCorrupt, DocumentCorrupt];

export function viewRepair({ log, reader, onFault }: ViewRepairDeps): ViewRepair {
  const reported = new Set<string>();
  const reportOnce = (row: string, what: string, cause?: unknown): void => {
    if (reported.has(row)) return;
    if (reported.size >= MAX_REPORTED) reported.clear();
    reported.add(row);
    onFault(new Error(`The stored row of ${row} cannot be read: ${what}`, { cause }));
  };
  /** Throws the log's errors: then the row's state is unknown. */
  const repaired = async <T>(row: string, made: Promise<T | null>): Promise<T | null> => {
    try {
      const anew = await made;
      reportOnce(row, anew === null ? 'the log has none, it is left out' : 'it is made anew from the log');
      return anew;
    } catch (error) {
      if (!CORRUPTIONS.some((damage) => error instanceof damage)) throw error;
      reportOnce(row, 'nor can its record, it is left out', error);
      return null;
    }
  };
  return {
    run: (id) => repaired(`run "${id}"`, runOf(id, reader)),
    blueprint: (id) => repaired(`blueprint "${id}"`, blueprintOf(id, log)),
    document: (id) => repaired(`document "${id}"`, documentOf(id, log)),
  };
}

async function runOf(id: string, reader: ViewRepairDeps['reader']): Promise<RunSummary | null> {
  const run = await reader.fold(id);
  return run === null ? null : summaryOf(run);
}

/** A blueprint as the log has it; null when it is deleted or unknown. @throws {BlueprintCorrupt} */
export async function blueprintOf(id: string, log: ViewRepairDeps['log']): Promise<Blueprint | null> {
  const last = await lastEvent(log, blueprintStream(id));
  return last === null ? null : (blueprintAfter(last) ?? null);
}

async function documentOf(id: string, log: ViewRepairDeps['log']): Promise<DocumentRecord | null> {
  const { decisive } = await documentStatusOf(log, id);
  return decisive === null ? null : documentRecordOf(decisive);
}
