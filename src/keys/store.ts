/**
 * The keys: one stream on the log, which every instance folds in memory. A change is appended at the exact revision
 * that it was decided on, so that no two instances give the same name.
 */
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import type { AggregateChange, StreamHead } from '../eventsourcing/aggregate.js';
import { changeAggregate, headOf } from '../eventsourcing/aggregate.js';
import type { Scope } from './caller.js';
import { isScope } from './caller.js';
import { GENESIS_HASH, checkLink } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { present } from '../system/element.js';
import { Sequencer, TaskTracker } from '../system/async/tasks.js';
import { ServiceStopping } from '../errors.js';
import {
  KeyEnded,
  KeyNotFirst,
  KeyRefused,
  KeyTaken,
  KeyUnknown,
  KeysContended,
  KeysCorrupt,
  TooManyKeys,
} from './errors.js';
import type { KeyEvent, KeyFact } from './events.js';
import { KEYS_STREAM, keyEventReader } from './events.js';
import { sharedReads } from './shared-reads.js';
import type { KeyRequest } from './key-request.js';
import { assertKeyRequest } from './key-request.js';

/** Largest number of keys in a log, revoked and expired ones included: names are never given again. */
const MAX_KEYS = 10_000;
/** The prefix of every key, so that tools recognise a key in a text. */
const KEY_PREFIX = 'council_';
const KEY_FORM = new RegExp(`^${KEY_PREFIX}[A-Za-z0-9_-]{43}$`);
/** Conflicts with other instances before a change fails. */
const MAX_CONFLICTS = 50;

export interface KeyStoreOptions {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  /** Called with errors in the background: a use of a key cannot be recorded, or events cannot be read. */
  readonly onFault: (error: unknown) => void;
}

export interface AddedBy {
  /** Name of the key that adds the new one, or null if it is the first or is added on the log itself. */
  readonly actor: string | null;
  /** Whether the key is added only if it is the first. */
  readonly isFirst?: boolean;
}

/** A new key. Its text cannot be read again. */
export interface NewKey {
  readonly key: Key;
  readonly text: string;
}

export class KeyStore {
  readonly #options: KeyStoreOptions;
  readonly #ring = new KeyRing();
  /** Runs the changes of this instance one after the other, because concurrent ones would conflict. */
  readonly #changes = new Sequencer();
  readonly #reads = new Sequencer();
  readonly #tasks = new TaskTracker();
  readonly #stopping = new AbortController();
  readonly #readNew: () => Promise<void>;
  readonly #listeners = new Set<() => void>();
  /** Names of keys whose use is being recorded. */
  readonly #recordingUse = new Set<string>();
  #corruption: KeysCorrupt | null = null;

  constructor(options: KeyStoreOptions) {
    this.#options = options;
    this.#readNew = sharedReads(() => this.#readOn(), { system: options.system, signal: this.#stopping.signal });
  }

  /** Reads all keys. The caller must call it first. @throws {KeysCorrupt | LogUnavailable} */
  async load(): Promise<void> {
    await this.#readOn();
  }

  /** Whether no key was ever added. @throws {KeysCorrupt} */
  get isOpen(): boolean {
    this.#assertReadable();
    return this.#ring.size === 0;
  }

  /** All keys in the order they were added. @throws {KeysCorrupt} */
  list(): readonly Key[] {
    this.#assertReadable();
    return this.#ring.all();
  }

  /** @throws {KeysCorrupt} */
  named(name: string): Key | null {
    this.#assertReadable();
    return this.#ring.named(name) ?? null;
  }

  /** The key with this text, or null if this instance does not know it. Does not read the log. @throws {KeysCorrupt} */
  known(text: string): Key | null {
    this.#assertReadable();
    const { sha256, isEqual } = this.#options.system;
    const hash = sha256(text);
    const found = this.#ring.hashed(hash);
    return found !== undefined && isEqual(found.hash, hash) ? found : null;
  }

  /**
   * The key with this text, revoked and expired ones included, or null if there is none. Reads the log for an unknown
   * key, which another instance may have just added.
   *
   * @throws {KeysCorrupt | LogUnavailable}
   */
  async find(text: string): Promise<Key | null> {
    const known = this.known(text);
    if (known !== null || !KEY_FORM.test(text)) return known;
    await this.#readNew();
    return this.known(text);
  }

  /**
   * Adds a key. The first one must have the scope `admin`, because only such a key can add others.
   *
   * @throws {KeyEnded | KeyRefused | KeyTaken | KeyNotFirst | TooManyKeys | KeysContended | KeysCorrupt}
   */
  async add(request: KeyRequest, { actor, isFirst = false }: AddedBy): Promise<NewKey> {
    const { system } = this.#options;
    const { name, scopes, expiresAt } = request;
    // 256 random bits, which are not recorded.
    const text = KEY_PREFIX + system.secret();
    const hash = system.sha256(text);
    await this.#change(() => {
      this.#assertNotEnded(actor);
      if (isFirst && this.#ring.size > 0) throw new KeyNotFirst();
      assertKeyRequest(request, system.now());
      if (this.#ring.size === 0 && !scopes.includes('admin')) {
        throw new KeyRefused({
          field: 'scopes',
          reason: 'there are no keys yet, and the first key needs the scope admin, to add others',
        });
      }
      if (this.#ring.named(name) !== undefined) throw new KeyTaken({ name });
      if (this.#ring.size >= MAX_KEYS) throw new TooManyKeys({ limit: MAX_KEYS });
      return [{ type: 'KeyAdded', data: { name, hash, scopes: [...scopes], expiresAt, actor } }];
    });
    return { key: this.#changed(name), text };
  }

  /**
   * Revokes a key. A key that is revoked already keeps its time of revocation.
   *
   * @throws {KeyEnded | KeyUnknown | KeysContended | KeysCorrupt}
   */
  async revoke(name: string, actor: string | null): Promise<Key> {
    await this.#change(() => {
      this.#assertNotEnded(actor);
      const key = this.#ring.named(name);
      if (key === undefined) throw new KeyUnknown({ name });
      return key.revoked === null ? [{ type: 'KeyRevoked', data: { name, actor } }] : [];
    });
    return this.#changed(name);
  }

  /** Records in the background that a key is used today (UTC), once a day over all instances. */
  recordUse({ name, lastUsed }: Pick<Key, 'name' | 'lastUsed'>, now: string): void {
    const day = now.slice(0, 10);
    if (isUseRecorded(lastUsed, day) || this.#recordingUse.has(name)) return;
    this.#recordingUse.add(name);
    this.#change(() =>
      isUseRecorded(this.#ring.named(name)?.lastUsed ?? null, day) ? [] : [{ type: 'KeyUsed', data: { name, day } }],
    )
      .catch((error: unknown) => {
        if (!this.#tasks.isEnding) this.#options.onFault(error);
      })
      .finally(() => this.#recordingUse.delete(name));
  }

  /** The recorded events from a revision on, read from the log. @throws {KeysCorrupt | LogUnavailable} */
  events(range: { readonly from: number; readonly max?: number }): AsyncGenerator<KeyEvent> {
    const { log, system } = this.#options;
    return keyEventReader.read(log, KEYS_STREAM, { sha256: system.sha256, ...range });
  }

  /** The caller must pass every event of the log, of any stream. Skips known events. */
  onEventRecorded(event: RecordedEvent): void {
    if (event.stream !== KEYS_STREAM || event.revision <= this.#seq) return;
    const next = this.#nextOf(event);
    if (next !== null) return this.#adopt([next]);
    // An event before this one is missing, or this one is corrupt. A read of the log shows which.
    this.#readNew().catch((error: unknown) => this.#options.onFault(error));
  }

  /** Calls the listener after each change of the keys. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Waits until the log has answered the changes in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#tasks.end();
  }

  /** Revision of the last known event, or -1 if there is none. */
  get #seq(): number {
    return this.#ring.head?.seq ?? -1;
  }

  #changed(name: string): Key {
    return present(this.#ring.named(name), `key "${name}"`);
  }

  /** @param decide returns the events to record, or none if nothing changes */
  #change(decide: () => readonly KeyFact[]): Promise<void> {
    const change: AggregateChange<void, KeyFact> = {
      stream: KEYS_STREAM,
      subject: 'all',
      read: async () => {
        if (this.#tasks.isEnding) throw new ServiceStopping();
        await this.#readOn();
        this.#assertReadable();
      },
      headOf: () => this.#ring.head,
      decide,
      limit: { conflicts: MAX_CONFLICTS, error: (cause) => new KeysContended({ cause }) },
    };
    const changed = this.#changes.run(async () => {
      const { recorded } = await changeAggregate(this.#options, change, this.#tasks.signal);
      this.#adopt(recorded);
    });
    return this.#tasks.track(changed);
  }

  /** Reads the log from the last known event and folds what is new. @throws {KeysCorrupt} */
  #readOn(): Promise<void> {
    return this.#reads.run(async () => {
      try {
        const events: KeyEvent[] = [];
        for await (const event of this.events({ from: this.#seq + 1 })) events.push(event);
        this.#adopt(events);
      } catch (error) {
        if (error instanceof KeysCorrupt) this.#corruption = error;
        throw error;
      }
    });
  }

  /** Folds the new ones of these events and notifies the listeners. */
  #adopt(events: readonly KeyEvent[]): void {
    let isChanged = false;
    for (const event of events) {
      if (event.seq !== this.#seq + 1) continue;
      this.#ring.take(event);
      isChanged = true;
    }
    if (isChanged) for (const listener of this.#listeners) listener();
  }

  /** The event, or null if it does not follow the last known one. */
  #nextOf(recorded: RecordedEvent): KeyEvent | null {
    if (recorded.revision !== this.#seq + 1) return null;
    try {
      const event = keyEventReader.eventOf(recorded);
      const previous = this.#ring.head?.hash ?? GENESIS_HASH;
      return checkLink(previous, event, this.#options.system.sha256) ? event : null;
    } catch {
      return null;
    }
  }

  /** Refuses a caller whose key has ended since the authentication. @throws {KeyEnded} */
  #assertNotEnded(actor: string | null): void {
    const key = actor === null ? undefined : this.#ring.named(actor);
    const end = key === undefined ? null : keyEnded(key, this.#options.system.now());
    if (key !== undefined && end !== null) throw new KeyEnded({ name: key.name, end });
  }

  /** While the keys are unreadable, no caller is authenticated. @throws {KeysCorrupt} */
  #assertReadable(): void {
    if (this.#corruption !== null) throw this.#corruption;
  }
}

/** Days as texts sort as days. The clocks of instances may differ by a day. */
function isUseRecorded(lastUsed: string | null, day: string): boolean {
  return lastUsed !== null && lastUsed >= day;
}

// The keys of a log, folded from their stream.

/** A key without its text. */
export interface Key {
  readonly name: string;
  /** Lower-case hex SHA-256 of its text. */
  readonly hash: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Times are ISO 8601, UTC, milliseconds. */
  readonly addedAt: string;
  /** Name of the key that added it, or null if it is the first key or was added on the log itself; so for `revoked`. */
  readonly addedBy: string | null;
  readonly expiresAt: string | null;
  readonly revoked: { readonly at: string; readonly by: string | null } | null;
  /** The last day in UTC on which it was used, as `YYYY-MM-DD`. */
  readonly lastUsed: string | null;
}

/** Why a key is no longer valid, or null if it is valid. */
export function keyEnded({ revoked, expiresAt }: Key, now: string): 'revoked' | 'expired' | null {
  if (revoked !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : null;
}

/** A key after an event, or undefined before it is added. */
function evolveKey(key: Key | undefined, { type, at, data }: KeyEvent): Key | undefined {
  switch (type) {
    case 'KeyAdded': {
      const { name, hash, expiresAt, actor } = data;
      // A newer version of the service may have recorded scopes that this one does not know.
      const scopes = new Set(data.scopes.filter(isScope));
      return { name, hash, scopes, addedAt: at, addedBy: actor, expiresAt, revoked: null, lastUsed: null };
    }
    case 'KeyRevoked':
      return key && { ...key, revoked: key.revoked ?? { at, by: data.actor } };
    case 'KeyUsed':
      return key && { ...key, lastUsed: data.day };
    default:
      return type satisfies never;
  }
}

/** The keys of a log, folded from the events passed to `take`. */
export class KeyRing {
  readonly #byName = new Map<string, Key>();
  readonly #names = new Map<string, string>();
  #head: StreamHead | null = null;

  /** The last event, or null if no key was ever added. */
  get head(): StreamHead | null {
    return this.#head;
  }

  /** Number of keys that were ever added. */
  get size(): number {
    return this.#byName.size;
  }

  /** All keys in the order they were added. */
  all(): readonly Key[] {
    return [...this.#byName.values()];
  }

  named(name: string): Key | undefined {
    return this.#byName.get(name);
  }

  hashed(hash: string): Key | undefined {
    const name = this.#names.get(hash);
    return name === undefined ? undefined : this.#byName.get(name);
  }

  /** Folds the next event. */
  take(event: KeyEvent): void {
    const { name } = event.data;
    const key = evolveKey(this.#byName.get(name), event);
    if (key !== undefined) {
      this.#byName.set(name, key);
      this.#names.set(key.hash, name);
    }
    this.#head = headOf(event);
  }
}
