/** Rebuilds stored rows that cannot be read from the log. */
import { checkedBlueprint, newestEvent } from '../blueprint/stream.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { RunCorrupt } from '../run/errors.js';
import type { Blueprint } from '../generated/schemas.js';
import { DocumentCorrupt } from '../documents/errors.js';
import type { DocumentRecord } from '../documents/events.js';
import { documentRecordOf } from '../documents/events.js';
import { documentStatusOf } from '../documents/events.js';
import type { EventLog } from '../eventlog/port.js';
import type { System } from '../system/system.js';
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
  readonly sha256: System['sha256'];
  readonly reader: Pick<RunReader, 'fold'>;
  /** Called with a row of which the log knows nothing: its id is damaged, and another row is missing. */
  readonly onUnknown: () => Promise<never>;
  /** Called once per row. */
  readonly onFault: (error: unknown) => void;
}

/** Most rows remembered as reported; beyond, they may be reported again. */
const MAX_REPORTED = 1_000;

const CORRUPTIONS = [RunCorrupt, BlueprintCorrupt, DocumentCorrupt];

/** What the log has of a row; null: its stream is empty. */
type Made<T> = { readonly row: T | null } | null;

export function viewRepair({ log, sha256, reader, onUnknown, onFault }: ViewRepairDeps): ViewRepair {
  const reported = new Set<string>();
  const reportOnce = (row: string, what: string, cause?: unknown): void => {
    if (reported.has(row)) return;
    if (reported.size >= MAX_REPORTED) reported.clear();
    reported.add(row);
    onFault(new Error(`The stored row of ${row} cannot be read: ${what}`, { cause }));
  };
  /** Throws the log's errors: then the row's state is unknown. */
  const repaired = async <T>(row: string, made: Promise<Made<T>>): Promise<T | null> => {
    try {
      const anew = await made;
      if (anew === null) return await onUnknown();
      // One that is deleted was so meanwhile.
      if (anew.row !== null) reportOnce(row, 'it is made anew from the log');
      return anew.row;
    } catch (error) {
      if (!CORRUPTIONS.some((damage) => error instanceof damage)) throw error;
      reportOnce(row, 'nor can its record, it is left out', error);
      return null;
    }
  };
  return {
    run: (id) => repaired(`run "${id}"`, runOf(id, reader)),
    blueprint: (id) => repaired(`blueprint "${id}"`, lastBlueprint(id, { log, sha256 })),
    document: (id) => repaired(`document "${id}"`, documentOf(id, log)),
  };
}

async function runOf(id: string, reader: ViewRepairDeps['reader']): Promise<Made<RunSummary>> {
  const run = await reader.fold(id);
  return run && { row: summaryOf(run) };
}

/** A blueprint as the log has it; null when it is deleted or unknown. @throws {BlueprintCorrupt} */
export async function blueprintOf(id: string, source: BlueprintSource): Promise<Blueprint | null> {
  return (await lastBlueprint(id, source))?.row ?? null;
}

type BlueprintSource = Pick<ViewRepairDeps, 'log' | 'sha256'>;

async function lastBlueprint(id: string, { log, sha256 }: BlueprintSource): Promise<Made<Blueprint>> {
  const last = await newestEvent(log, id);
  return last && { row: checkedBlueprint(last, sha256) ?? null };
}

async function documentOf(id: string, log: ViewRepairDeps['log']): Promise<Made<DocumentRecord>> {
  const { head, decisive } = await documentStatusOf(log, id);
  return head && { row: decisive === null ? null : documentRecordOf(decisive) };
}
