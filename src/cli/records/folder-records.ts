/** The records in the data directory of a stopped service. Reads without a lock and writes nothing there. */
import { exportLine } from '../../audit/export.js';
import type { FoldEvents } from '../../audit/parents.js';
import { draftSource } from '../../api/serializers/documents.js';
import { StreamRemoved } from '../../eventlog/errors.js';
import type { RecordedEvent, StreamRange } from '../../eventlog/port.js';
import { erasureIn } from '../../ledger/events.js';
import { RunCorrupt, RunErased, RunUnknown } from '../../run/errors.js';
import { foldedRun } from '../../api/serializers/runs.js';
import { storedPages } from '../../documents/stored-chunks.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { runIdOf } from '../../run/events.js';
import { foldRun, readChecked } from '../../run/stream.js';
import type { System } from '../../system/system.js';
import type { RunRecords, StartedBetween } from './record.js';
import { EventUnknown } from './record.js';
import { openFolderLog } from './folder-log.js';

/** Characters of an export in a chunk. */
const CHUNK_CHARS = 64 * 1024;

/**
 * Opens the records in a folder.
 *
 * @throws {DataDirHeld} a process uses the folder
 * @throws {LogUnreadable} there is no log, or it is unreadable; a call throws it too if a service has started since
 */
export function folderRecords(folder: string, { sha256 }: Pick<System, 'sha256'>): RunRecords {
  const opened = openFolderLog(folder);
  const log = {
    ...opened,
    readStream: (stream: string, range?: StreamRange) => readUnlessErased(opened, stream, range),
  };
  async function* events(runId: string): AsyncGenerator<ExportedEvent> {
    let isKnown = false;
    for await (const event of readChecked(log, runId, { sha256 })) {
      isKnown = true;
      yield event;
    }
    if (!isKnown) throw new RunUnknown({ runId });
  }
  const recorded = (runId: string): AsyncGenerator<ExportedEvent> => checkedUnchanged(log, events(runId));
  const folded: FoldEvents = (id, fold, max) => fold(readChecked(log, id, { sha256, max }));
  return {
    export: (runId) => inChunks(recorded(runId)),
    list: (started) => checkedUnchanged(log, runsStarted(log, started)),
    events: recorded,
    follow: recorded,
    async state(runId, at) {
      const run = await readUnchanged(log, () => foldRun(log, runId, { sha256, ...(at !== null && { to: at }) }));
      if (run === null) throw new RunUnknown({ runId });
      if (at !== null && run.head.seq < at) throw new EventUnknown({ runId, at, last: run.head.seq });
      return foldedRun(run);
    },
    async deliberation(runId) {
      const { deliberationOf } = await import('../../audit/deliberation.js');
      const found = await readUnchanged(log, () => deliberationOf(runId, folded));
      if (found === null) throw new RunUnknown({ runId });
      return found;
    },
    async sources(runId) {
      const { citedPagesOf } = await import('../../audit/sources.js');
      const found = await readUnchanged(log, () =>
        citedPagesOf(runId, {
          folded,
          pagesOf: (document, pages) => storedPages({ log, system: { sha256 } }, document, pages),
          pause: () => Promise.resolve(),
        }),
      );
      if (found === null) throw new RunUnknown({ runId });
      return found.map((each) => draftSource(each, null));
    },
    async verify(runId, head) {
      // Only this command replays.
      const { verifyInFolder } = await import('./verification.js');
      return await readUnchanged(log, () => verifyInFolder(runId, { log, head, sha256 }));
    },
    close: () => log.close(),
  };
}

async function* readUnlessErased(log: ReadOnlyLog, stream: string, range?: StreamRange): AsyncGenerator<RecordedEvent> {
  try {
    yield* log.readStream(stream, range);
  } catch (error) {
    const runId = error instanceof StreamRemoved ? runIdOf(stream) : null;
    const erased = runId === null ? null : await erasureIn(log, 'run', runId);
    if (runId === null || erased === null) throw error;
    throw new RunErased({ runId, erased });
  }
}

async function* runsStarted(log: ReadOnlyLog, { from, to }: StartedBetween): AsyncGenerator<string> {
  for await (const { stream, revision, metadata } of log.readAll(null, { categories: ['run'] })) {
    const runId = revision === 0 ? runIdOf(stream) : null;
    const at = metadata['occurredAt'] ?? '';
    if (runId !== null && at >= from && at <= to) yield runId;
  }
}

/** Reads, then checks that no service has changed the file meanwhile. @throws {LogUnreadable} the file has changed */
async function readUnchanged<T>(log: ReadOnlyLog, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } finally {
    log.assertUnchanged();
  }
}

async function* checkedUnchanged<T>(log: ReadOnlyLog, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
    log.assertUnchanged();
  } catch (error) {
    if (error instanceof RunCorrupt) log.assertUnchanged();
    throw error;
  }
}

async function* inChunks(events: AsyncIterable<ExportedEvent>): AsyncGenerator<Uint8Array> {
  let text = '';
  for await (const event of events) {
    text += `${exportLine(event)}\n`;
    if (text.length < CHUNK_CHARS) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}
