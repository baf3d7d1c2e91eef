/** The log of an engine: opened, watched over, and asked what it is. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenLogOptions } from '../eventlog/open.js';
import { openLog as openNamed } from '../eventlog/open.js';
import { LogCorrupt } from '../eventlog/errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import type { EngineConfig, EngineDeps } from './context.js';
import type { DataDirectory } from './data-directory.js';
import type { LogContact } from './log-contact.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { blueprintIdOf } from '../blueprint/events.js';
import { DocumentCorrupt } from '../documents/errors.js';
import { documentIdOf } from '../documents/events.js';
import { RunCorrupt } from '../run/errors.js';
import { runIdOf } from '../run/events.js';

export interface OpenedRecord {
  readonly log: EventLog;
  readonly identity: string;
  /** When it was opened. */
  readonly head: Position | null;
}

/** Opens the log that the settings name; it is asked until it answers. @throws {LogUnreadable | ConfigInvalid} */
export async function openRecord(
  config: EngineConfig,
  { dataDir, system, logger, onLogBroken = () => undefined, overrides = {} }: EngineDeps,
  contact: LogContact,
): Promise<OpenedRecord> {
  const watch = { ...logWatch(logger), onBroken: onLogBroken };
  const { openLog = openNamed } = overrides;
  const opened = await openLog({ ...placeOf(config, dataDir), ...watch, system });
  const log = config.eventStore === null ? recordsOn(opened) : opened;
  const logInfo = await contact.ask(async () => ({ identity: await log.identity(), head: await log.head() }));
  return { log, ...logInfo };
}

/** Logs damage and a full disk of the embedded log, which is served on. */
function logWatch(logger: EngineDeps['logger']): Pick<OpenLogOptions, 'onCorrupt' | 'onFull'> {
  return {
    onCorrupt: (err) => logger.error({ err }, 'the event log is damaged: serving what is not touched by it'),
    onFull(isFull) {
      if (isFull) logger.error({}, "the event log's disk is full: nothing new is taken, runs wait");
      else logger.info({}, "the event log's disk has room again");
    },
  };
}

/** In the folder of the stored read models. */
export const VIEWS_FILE = 'views.sqlite';

/** Where the record is; the embedded one must be there when views have been folded from it. */
function placeOf(
  { eventStore }: EngineConfig,
  { logFile, viewsDir }: DataDirectory,
): Pick<OpenLogOptions, 'eventStore' | 'file' | 'viewsOf'> {
  const hasViews = existsSync(join(viewsDir, VIEWS_FILE));
  return { eventStore, file: logFile, viewsOf: hasViews ? viewsDir : null };
}

/**
 * A log that reports damage of its file as damage of the one record that met it: run, document or blueprint. The others
 * are served on.
 */
function recordsOn(log: EventLog): EventLog {
  return {
    append: (stream, events, expected) =>
      log.append(stream, events, expected).catch((error: unknown) => {
        throw recordFault(error, { stream, seq: expected === 'none' ? 0 : expected + 1 });
      }),
    readStream: (stream, range) => read(log.readStream(stream, range), { stream, seq: range?.from ?? 0 }),
    readAll: (after, range) => log.readAll(after, range),
    subscribe: (after, following) => log.subscribe(after, following),
    identity: () => log.identity(),
    head: () => log.head(),
    hasGaps: () => log.hasGaps(),
    ping: () => log.ping(),
    close: () => log.close(),
  };
}

interface Place {
  readonly stream: string;
  readonly seq: number;
}

async function* read(events: AsyncIterable<RecordedEvent>, { stream, seq }: Place): AsyncGenerator<RecordedEvent> {
  let next = seq;
  try {
    for await (const event of events) {
      next = event.revision + 1;
      yield event;
    }
  } catch (error) {
    throw recordFault(error, { stream, seq: next });
  }
}

function recordFault(error: unknown, { stream, seq }: Place): unknown {
  if (!(error instanceof LogCorrupt)) return error;
  const [runId, documentId, blueprintId] = [runIdOf(stream), documentIdOf(stream), blueprintIdOf(stream)];
  const reason = error.message;
  if (runId !== null) return new RunCorrupt({ runId, seq, reason }, { cause: error });
  if (documentId !== null) return new DocumentCorrupt({ documentId, seq, reason }, { cause: error });
  if (blueprintId !== null) return new BlueprintCorrupt({ blueprintId, seq, reason }, { cause: error });
  return error;
}
