/**
 * The file `log-seen` of a data directory: the server's log that the folder has seen and how far, and whether its
 * log ever had API keys. With it the service refuses a server's log that is another one or has lost its end, and any log
 * that has lost its keys. Where the embedded log ends is in a file of its own (eventlog/embedded/head-file.ts).
 */
import { existsSync } from 'node:fs';
import { withoutSecrets } from '../config-values.js';
import { instanceStream } from '../cluster/cluster.js';
import { documentIdOf } from '../documents/events.js';
import { StreamRemoved } from '../eventlog/errors.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { ACCEPT_LOSS, LogUnreadable, categoryOf, lastEvent } from '../eventlog/port.js';
import { erasureIn } from '../ledger/events.js';
import { runIdOf } from '../run/events.js';
import type { KeyStore } from '../keys/store.js';
import type { System } from '../system/system.js';
import { isRecord } from '../system/untrusted.js';
import type { ContextConfig } from './context-deps.js';
import type { DataDirectory, SeenLogFile } from './data-directory.js';

/** Shortest time between two writes of the newest event, in milliseconds. */
const WRITE_EVERY_MS = 1_000;
/** Categories whose streams lose events in the normal course. */
const SHORT_LIVED: ReadonlySet<string> = new Set(['instance', 'session', 'tickets']);

/** An event of a server's log. */
interface SeenEvent {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly position: Position;
}

interface Seen {
  /** Null if the folder has never seen a server's log. */
  readonly server: { readonly identity: string; readonly last: SeenEvent | null } | null;
  readonly hadKeys: boolean;
}

const NEVER_SEEN: Seen = { server: null, hadKeys: false };

/** Forgets which log the folder has seen. @returns whether that log had API keys */
export function forgetSeenLog(dataDir: Pick<DataDirectory, 'path' | 'seenLog'>): boolean {
  try {
    return seenIn(dataDir).hadKeys;
  } catch {
    return false;
  } finally {
    dataDir.seenLog.remove();
  }
}

/**
 * A blank file was created without its first text: the disk was full, or the power failed. It records no keys, because those
 * are synced.
 *
 * @throws {LogUnreadable} the file is corrupt
 */
function seenIn({ path, seenLog }: Pick<DataDirectory, 'path' | 'seenLog'>): Seen {
  const text = seenLog.read();
  if (text === null || /^\0*$/.test(text)) return NEVER_SEEN;
  try {
    const seen: unknown = JSON.parse(text);
    if (isSeen(seen)) return seen;
  } catch {
    // It is no JSON.
  }
  throw new LogUnreadable({ file: path, reason: `its file log-seen is corrupt: ${ACCEPT_LOSS}` });
}

function isSeen(seen: unknown): seen is Seen {
  if (!isRecord(seen) || typeof seen['hadKeys'] !== 'boolean') return false;
  const { server } = seen;
  if (server === null) return true;
  if (!isRecord(server) || typeof server['identity'] !== 'string') return false;
  const { last } = server;
  if (last === null) return true;
  if (!isRecord(last)) return false;
  return (
    ['stream', 'id', 'position'].every((name) => typeof last[name] === 'string') &&
    Number.isSafeInteger(last['revision'])
  );
}

interface OpenedLog {
  readonly log: EventLog;
  readonly identity: string;
  readonly head: Position | null;
  readonly instanceId: string;
  readonly keys: Pick<KeyStore, 'isOpen' | 'onChange'>;
}

interface SeenFrom {
  readonly dataDir: Pick<DataDirectory, 'path' | 'logFile' | 'seenLog'>;
  readonly system: Pick<System, 'monotonicMs'>;
}

/**
 * Compares the log with what the folder has seen of it. Changes nothing.
 *
 * @returns what records the rest, once it is started
 * @throws {LogUnreadable} the log is another one, lacks an event that the folder has seen, or has lost its API keys
 */
export async function checkSeenLog(
  { eventStore }: Pick<ContextConfig, 'eventStore'>,
  { dataDir, system }: SeenFrom,
  opened: OpenedLog,
): Promise<SeenLog> {
  const seen = seenIn(dataDir);
  const isOnServer = eventStore !== null;
  const name = eventStore === null ? dataDir.logFile : withoutSecrets(eventStore.url);
  const refusal = (loss: string): LogUnreadable => new LogUnreadable({ file: name, reason: `${loss}: ${ACCEPT_LOSS}` });
  const loss = eventStore === null || seen.server === null ? null : await lossOf(opened, seen.server);
  if (loss !== null) throw refusal(`${loss}; check EVENTSTORE_URL and EVENTSTORE_PREFIX`);
  // The keys of an embedded log beside a server's are compared one by one (log-in-folder.ts).
  const isMoving = isOnServer && existsSync(dataDir.logFile);
  if (seen.hadKeys && opened.keys.isOpen && !isMoving)
    throw refusal('its API keys are lost: it had some before, and without them every caller could do everything');
  const server = isOnServer ? { identity: opened.identity, last: seen.server?.last ?? null } : seen.server;
  return new SeenLog({
    file: dataDir.seenLog,
    seen: { server, hadKeys: seen.hadKeys },
    isOnServer,
    instanceId: opened.instanceId,
    keys: opened.keys,
    system,
  });
}

/** What a log has lost, as a sentence, or null if it has lost nothing. */
async function lossOf(
  { log, identity, head }: OpenedLog,
  { identity: known, last }: NonNullable<Seen['server']>,
): Promise<string | null> {
  if (identity !== known) return 'it is not the log that this folder held before';
  if (last === null) return null;
  const { stream, revision, id, position } = last;
  const found = head === null || head < position ? null : await seenEvent(log, stream, revision);
  return found === 'erased' || found?.id === id
    ? null
    : `it lacks event ${revision} of "${stream}", which this folder has seen`;
}

/** The event of a stream at a revision or before it. Without a leaf of its erasure, a removed stream has lost its events. */
async function seenEvent(log: EventLog, stream: string, revision: number): Promise<RecordedEvent | 'erased' | null> {
  try {
    return await lastEvent(log, stream, revision);
  } catch (error) {
    if (!(error instanceof StreamRemoved)) throw error;
    const runId = runIdOf(stream);
    const erasure =
      runId === null ? erasureIn(log, 'document', documentIdOf(stream) ?? '') : erasureIn(log, 'run', runId);
    return (await erasure) === null ? null : 'erased';
  }
}

/** Records what the service sees of its log. A consumer of the log's events. */
export class SeenLog {
  readonly #options: SeenLogOptions;
  #seen: Seen;
  /** The newest event of the log that was folded. */
  #newest: SeenEvent | null;
  #isRecording = false;
  #writtenMs = 0;

  constructor(options: SeenLogOptions) {
    this.#options = options;
    this.#seen = options.seen;
    this.#newest = options.seen.server?.last ?? null;
  }

  /** Whether the log is a server's. Only then this object needs each event. */
  get isOnServer(): boolean {
    return this.#options.isOnServer;
  }

  /** Records from now on. */
  start(): void {
    const { keys } = this.#options;
    this.#isRecording = true;
    this.#write();
    keys.onChange(() => this.#noteKeys());
    this.#noteKeys();
  }

  /**
   * Another log may take the place of this one and deliver its events until the next heartbeat fails. So an event counts
   * only once a heartbeat of this instance follows it.
   */
  onEventFolded({ stream, revision, id, position }: RecordedEvent): void {
    const { system, instanceId } = this.#options;
    if (stream === instanceStream(instanceId)) {
      this.#confirm();
      if (system.monotonicMs() - this.#writtenMs >= WRITE_EVERY_MS) this.#write();
    } else if (!SHORT_LIVED.has(categoryOf(stream)) && position > (this.#newest?.position ?? '')) {
      this.#newest = { stream, revision, id, position };
    }
  }

  /** May be called twice. */
  stop(): void {
    this.#confirm();
    this.#write();
    this.#isRecording = false;
  }

  #confirm(): void {
    const { server } = this.#seen;
    if (server !== null) this.#seen = { ...this.#seen, server: { ...server, last: this.#newest } };
  }

  #noteKeys(): void {
    if (this.#seen.hadKeys || this.#options.keys.isOpen) return;
    this.#seen = { ...this.#seen, hadKeys: true };
    this.#write(true);
  }

  #write(isDurable = false): void {
    if (!this.#isRecording) return;
    this.#writtenMs = this.#options.system.monotonicMs();
    try {
      this.#options.file.write(JSON.stringify(this.#seen), isDurable);
    } catch {
      // The folder is gone or broken, which the log or the views report. The file then names an older event.
    }
  }
}

interface SeenLogOptions {
  readonly file: SeenLogFile;
  readonly seen: Seen;
  /** Whether the log is on a server now. */
  readonly isOnServer: boolean;
  readonly instanceId: string;
  readonly keys: Pick<KeyStore, 'isOpen' | 'onChange'>;
  readonly system: Pick<System, 'monotonicMs'>;
}
