/** Opens the record: the log and the keys. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenLogOptions } from '../eventlog/open.js';
import { openLog as openNamed } from '../eventlog/open.js';
import { LogCorrupt, LogDenied, LogUnavailable, StreamRemoved } from '../eventlog/errors.js';
import type { EventLog, Position, RecordedEvent, StreamRange } from '../eventlog/port.js';
import { Authenticator } from '../keys/authenticator.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import type { ContextConfig, ContextDeps } from './context-deps.js';
import type { SeenLog } from './seen-log.js';
import { checkSeenLog } from './seen-log.js';
import type { DataDirectory } from './data-directory.js';
import { BlueprintCorrupt } from '../blueprint/errors.js';
import { blueprintIdOf } from '../blueprint/events.js';
import { DocumentCorrupt } from '../documents/errors.js';
import { documentIdOf, documentStreamSince } from '../documents/events.js';
import type { Erased, ErasureLeaf } from '../ledger/events.js';
import { RunCorrupt, RunErased } from '../run/errors.js';
import { runIdOf } from '../run/events.js';
import { WebhookCorrupt } from '../webhooks/errors.js';
import { isOfWebhooks } from '../webhooks/events.js';
import { backoffMs } from '../system/async/deadline.js';
import { rootCause } from './fault-reporter.js';

export interface OpenedRecord {
  readonly log: EventLog;
  readonly identity: string;
  /** Position of the newest event when the log was opened, or null if the log was empty. */
  readonly head: Position | null;
  readonly instanceId: string;
  /** Authenticates callers by keys, sessions and tickets; its keys are loaded. */
  readonly authenticator: Authenticator;
  /** Records how far this folder has seen the log. */
  readonly seen: SeenLog;
}

/**
 * Opens the log that the settings name, waits until it answers, loads the keys, and checks that the log has lost
 * nothing that this folder has seen. Closes the log if that fails.
 *
 * @throws {DataDirHeld | LogUnreadable | ConfigInvalid | KeysCorrupt}
 */
export async function openRecord(config: ContextConfig, deps: ContextDeps): Promise<OpenedRecord> {
  const { system, logger } = deps;
  const log = await openedLog(config, deps);
  const contact = new LogContact(deps);
  const instanceId = system.uuid();
  const onFault = (err: unknown): void => logger.error({ err }, 'keys: fault');
  const authenticator = new Authenticator({ log, system, instanceId, onFault });
  try {
    const [identity, head] = await contact.ask(async () => [await log.identity(), await log.head()] as const);
    await contact.ask(() => authenticator.keys.load());
    const opened = { log, identity, head, instanceId, keys: authenticator.keys };
    const seen = await contact.ask(() => checkSeenLog(config, deps, opened));
    return { log, identity, head, instanceId, authenticator, seen };
  } catch (error) {
    await log.close();
    throw error;
  }
}

async function openedLog(
  config: ContextConfig,
  { dataDir, system, logger, onLogBroken = () => undefined, overrides = {} }: ContextDeps,
): Promise<EventLog> {
  const { openLog = openNamed } = overrides;
  const watch = { ...logWatch(logger), onBroken: onLogBroken };
  return await openLog({ ...placeOf(config, dataDir), ...watch, system });
}

/** Logs corruption and a full disk of the embedded log; the service continues. */
function logWatch(logger: Logger): Pick<OpenLogOptions, 'onCorrupt' | 'onFull'> {
  return {
    onCorrupt: (err) =>
      logger.error({ err }, 'the event log is corrupt: serving the records that are not affected; run "council check"'),
    onFull(isFull) {
      if (isFull) logger.error({}, "the event log's disk is full: refusing appends, runs wait; free space on it");
      else logger.info({}, "the event log's disk has room again");
    },
  };
}

/** Name of the file with the stored read models, in their folder. */
export const VIEWS_FILE = 'views.sqlite';

/** Where the log is. The embedded log must exist if there are views that were folded from it. */
function placeOf(
  { eventStore }: ContextConfig,
  { logFile, viewsDir }: DataDirectory,
): Pick<OpenLogOptions, 'eventStore' | 'file' | 'viewsOf'> {
  const hasViews = existsSync(join(viewsDir, VIEWS_FILE));
  return { eventStore, file: logFile, viewsOf: hasViews ? viewsDir : null };
}

/**
 * The log as the service uses it. It reports how long appends take. If a call meets a corrupt part of the embedded log's file,
 * it throws the error of the one record that the call was about: a run, document, blueprint or webhook. The service
 * continues to serve the others. A call about a removed run throws RunErased, or RunCorrupt if no erasure is recorded.
 */
export function watchedLog(
  log: EventLog,
  {
    system,
    isEmbedded,
    onAppended,
    erasedAs,
  }: {
    readonly system: Pick<System, 'monotonicMs'>;
    readonly isEmbedded: boolean;
    /** Receives the time from the call of an append to its acknowledgement, in milliseconds. */
    readonly onAppended: (ms: number) => void;
    /** The newest erasure of a run or a document, or null if none is recorded. */
    readonly erasedAs: (what: ErasureLeaf['what'], id: string) => Promise<Erased | null>;
  },
): EventLog {
  const faultOf = async (error: unknown, place: EventAt): Promise<unknown> => {
    const runId = error instanceof StreamRemoved ? runIdOf(place.stream) : null;
    if (runId === null) return isEmbedded ? recordFault(error, place) : error;
    const erased = await erasedAs('run', runId);
    if (erased !== null) return new RunErased({ runId, erased });
    const reason = 'its events were removed from the log, and no erasure is recorded';
    return new RunCorrupt({ runId, seq: 0, reason }, { cause: error });
  };
  /** The stream of a document that took the place of a removed one, or null if there is none. */
  const successorOf = async (error: unknown, stream: string): Promise<string | null> => {
    const documentId = error instanceof StreamRemoved ? documentIdOf(stream) : null;
    const erased = documentId === null ? null : await erasedAs('document', documentId);
    if (documentId === null || erased === null) return null;
    const successor = documentStreamSince(documentId, erased.index);
    return successor === stream ? null : successor;
  };
  async function* read(
    events: AsyncIterable<RecordedEvent>,
    { stream, seq }: EventAt,
    range?: StreamRange,
  ): AsyncGenerator<RecordedEvent> {
    let next = seq;
    try {
      for await (const event of events) {
        next = event.revision + 1;
        yield event;
      }
    } catch (error) {
      const successor = await successorOf(error, stream);
      if (successor === null || next !== seq) throw await faultOf(error, { stream, seq: next });
      yield* read(log.readStream(successor, range), { stream: successor, seq }, range);
    }
  }
  return {
    async append(stream, events, expected) {
      const fromMs = system.monotonicMs();
      try {
        const appended = await log.append(stream, events, expected);
        onAppended(system.monotonicMs() - fromMs);
        return appended;
      } catch (error) {
        const successor = await successorOf(error, stream);
        if (successor !== null) return await log.append(successor, events, expected);
        throw await faultOf(error, { stream, seq: expected === 'none' ? 0 : expected + 1 });
      }
    },
    readStream(stream, range) {
      return read(log.readStream(stream, range), { stream, seq: range?.from ?? 0 }, range);
    },
    readAll: (after, range) => log.readAll(after, range),
    subscribe: (after, options) => log.subscribe(after, options),
    identity: () => log.identity(),
    head: () => log.head(),
    hasGaps: () => log.hasGaps(),
    remove: (streams) => log.remove(streams),
    ping: () => log.ping(),
    ...(log.backup && { backup: log.backup.bind(log) }),
    close: () => log.close(),
  };
}

interface EventAt {
  readonly stream: string;
  readonly seq: number;
}

function recordFault(error: unknown, { stream, seq }: EventAt): unknown {
  if (!(error instanceof LogCorrupt)) return error;
  const [runId, documentId, blueprintId] = [runIdOf(stream), documentIdOf(stream), blueprintIdOf(stream)];
  const reason = error.message;
  if (runId !== null) return new RunCorrupt({ runId, seq, reason }, { cause: error });
  if (documentId !== null) return new DocumentCorrupt({ documentId, seq, reason }, { cause: error });
  if (blueprintId !== null) return new BlueprintCorrupt({ blueprintId, seq, reason }, { cause: error });
  if (isOfWebhooks(stream)) return new WebhookCorrupt({ stream, seq, reason }, { cause: error });
  return error;
}

/** Wait between two tries, in milliseconds. */
const BACKOFF = { firstMs: 50, longestMs: 2_000 };

/** Log lines by the state of the log. */
const LINES = {
  away: 'the event log cannot be reached: waiting for it',
  denied:
    'the event log refuses this service: check the user in EVENTSTORE_URL, its password and its rights; trying again',
};

/** Repeats the first calls to the log until it answers, and logs each outage once. The wait has no limit. */
class LogContact {
  readonly #deps: Pick<ContextDeps, 'system' | 'logger' | 'onLogAway'>;
  #state: keyof typeof LINES | 'reached' = 'reached';

  constructor(deps: Pick<ContextDeps, 'system' | 'logger' | 'onLogAway'>) {
    this.#deps = deps;
  }

  /** Repeats a call until the log answers. @throws every error of the call but LogUnavailable */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        const result = await call();
        this.#markReached();
        return result;
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
        this.#markAway(error);
      }
      await new Promise<void>((resolve) => this.#deps.system.after(backoffMs(BACKOFF, failures), resolve));
    }
  }

  #markReached(): void {
    if (this.#state === 'reached') return;
    this.#state = 'reached';
    this.#deps.onLogAway?.(false);
    this.#deps.logger.info({}, 'the event log answers');
  }

  #markAway(error: LogUnavailable): void {
    const state = error instanceof LogDenied ? 'denied' : 'away';
    if (this.#state === state) return;
    this.#state = state;
    this.#deps.onLogAway?.(true);
    this.#deps.logger.error({ reason: rootCause(error).message }, LINES[state]);
  }
}
