/**
 * The keys: one stream on the log, folded in memory by every instance. A change is appended at the exact revision it was
 * decided on, so that a name is never given twice, whatever instance is asked.
 */
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { appendFacts, handleCommand } from '../eventsourcing/handle-command.js';
import { GENESIS_HASH, checkLink } from '../eventsourcing/hash-chain.js';
import type { System } from '../system/system.js';
import { present } from '../system/element.js';
import { Sequencer } from '../system/async/sequencer.js';
import { TaskTracker } from '../system/async/task-tracker.js';
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
import type { FreshReads } from './fresh-reads.js';
import { freshReads } from './fresh-reads.js';
import type { KeyRequest } from './key-request.js';
import { assertKeyRequest } from './key-request.js';
import type { Key } from './state.js';
import { KeyRing, keyEnded } from './state.js';

/** Most keys a log takes, revoked and expired ones included: names are never given again. */
const MAX_KEYS = 10_000;
/** What the text of each key begins with, so that it is recognised wherever it turns up. */
const KEY_PREFIX = 'council_';
const KEY_FORM = new RegExp(`^${KEY_PREFIX}[A-Za-z0-9_-]{43}$`);
/** Conflicts with other instances before a change gives up. */
const MAX_CONFLICTS = 50;

export interface KeyStoreOptions {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  /** Called with failures that no caller waits for: a use that cannot be recorded, events that cannot be read. */
  readonly onFault: (error: unknown) => void;
}

/** Who adds a key. */
export interface AddedBy {
  /** Name of their key; null: it is the first key of all, or they have access to the log itself. */
  readonly actor: string | null;
  /** Whether to add it only if it is the first. */
  readonly isFirst?: boolean;
}

/** A new key, with its text: shown in this answer alone. */
export interface NewKey {
  readonly key: Key;
  readonly text: string;
}

export class KeyStore {
  readonly #options: KeyStoreOptions;
  readonly #ring = new KeyRing();
  /** Serializes the changes of this instance: at once they would conflict with each other. */
  readonly #changes = new Sequencer();
  readonly #reads = new Sequencer();
  readonly #tasks = new TaskTracker();
  readonly #stopping = new AbortController();
  readonly #fresh: FreshReads;
  readonly #listeners = new Set<() => void>();
  /** Names of keys whose use is being recorded. */
  readonly #noting = new Set<string>();
  #corruption: KeysCorrupt | null = null;

  constructor(options: KeyStoreOptions) {
    this.#options = options;
    this.#fresh = freshReads(() => this.#readOn(), { system: options.system, signal: this.#stopping.signal });
  }

  /** Reads all keys; must be called before anything else. @throws {KeysCorrupt | LogUnavailable} */
  async load(): Promise<void> {
    await this.#readOn();
  }

  /** Whether no key was ever added. @throws {KeysCorrupt} it cannot be known */
  get isOpen(): boolean {
    this.#assertSound();
    return this.#ring.size === 0;
  }

  /** In the order they were added. @throws {KeysCorrupt} */
  list(): readonly Key[] {
    this.#assertSound();
    return this.#ring.all();
  }

  /** @throws {KeysCorrupt} */
  named(name: string): Key | null {
    this.#assertSound();
    return this.#ring.named(name) ?? null;
  }

  /** The key with this text, as far as it is known without reading the log. @throws {KeysCorrupt} */
  known(text: string): Key | null {
    this.#assertSound();
    const { sha256, isEqual } = this.#options.system;
    const hash = sha256(text);
    const found = this.#ring.hashed(hash);
    return found !== undefined && isEqual(found.hash, hash) ? found : null;
  }

  /**
   * The key with this text, also one that has ended; null when there is none. An unknown one is looked up on the log:
   * another instance may have added it a moment ago.
   *
   * @throws {KeysCorrupt | LogUnavailable}
   */
  async find(text: string): Promise<Key | null> {
    const known = this.known(text);
    if (known !== null || !isKeyText(text)) return known;
    await this.#fresh.fresh();
    return this.known(text);
  }

  /**
   * Adds a key. The first one must have the scope `admin`: else nobody could add another.
   *
   * @throws {KeyEnded | KeyRefused | KeyTaken | KeyNotFirst | TooManyKeys | KeysContended | KeysCorrupt}
   */
  async add(request: KeyRequest, { actor, isFirst = false }: AddedBy): Promise<NewKey> {
    const { system } = this.#options;
    const { name, scopes, expiresAt } = request;
    // 256 random bits, shown once and recorded nowhere.
    const text = KEY_PREFIX + system.secret();
    const hash = system.sha256(text);
    await this.#change(() => {
      this.#assertStands(actor);
      if (isFirst && this.#ring.size > 0) throw new KeyNotFirst();
      assertKeyRequest(request, system.now());
      if (this.#ring.size === 0 && !scopes.includes('admin')) {
        throw new KeyRefused({ field: 'scopes', reason: 'the first key needs the scope admin, to add others' });
      }
      if (this.#ring.named(name) !== undefined) throw new KeyTaken({ name });
      if (this.#ring.size >= MAX_KEYS) throw new TooManyKeys({ limit: MAX_KEYS });
      return { type: 'KeyAdded', data: { name, hash, scopes: [...scopes], expiresAt, actor } };
    });
    return { key: this.#present(name), text };
  }

  /**
   * Revokes a key. One that was revoked before keeps its time.
   *
   * @throws {KeyEnded | KeyUnknown | KeysContended | KeysCorrupt}
   */
  async revoke(name: string, actor: string | null): Promise<Key> {
    await this.#change(() => {
      this.#assertStands(actor);
      const key = this.#ring.named(name);
      if (key === undefined) throw new KeyUnknown({ name });
      return key.revoked === null ? { type: 'KeyRevoked', data: { name, actor } } : null;
    });
    return this.#present(name);
  }

  /** Records that a key was used on this day, once a day across all instances. In the background. */
  used({ name, lastUsed }: Pick<Key, 'name' | 'lastUsed'>, now: string): void {
    const day = now.slice(0, 10);
    if (isNoted(lastUsed, day) || this.#noting.has(name)) return;
    this.#noting.add(name);
    this.#change(() =>
      isNoted(this.#ring.named(name)?.lastUsed ?? null, day) ? null : { type: 'KeyUsed', data: { name, day } },
    )
      .catch((error: unknown) => {
        if (!this.#tasks.isEnding) this.#options.onFault(error);
      })
      .finally(() => this.#noting.delete(name));
  }

  /** The record of the keys from a revision on, read from the log. @throws {KeysCorrupt | LogUnavailable} */
  events(range: { readonly from: number; readonly max?: number }): AsyncGenerator<KeyEvent> {
    const { log, system } = this.#options;
    return keyEventReader.read(log, KEYS_STREAM, { sha256: system.sha256, ...range });
  }

  /** Must be called with each event of the log, of whatever stream; known events are skipped. */
  recorded(event: RecordedEvent): void {
    if (event.stream !== KEYS_STREAM || event.revision <= this.#seq) return;
    const next = this.#nextOf(event);
    if (next !== null) return this.#adopt([next]);
    // An event is missing before it, or it is damaged: a read of the log shows which.
    this.#fresh.fresh().catch((error: unknown) => this.#options.onFault(error));
  }

  /** Calls back after each change of the keys. Returns a function that cancels this. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Waits for changes in flight to get one answer of the log. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#tasks.end();
  }

  /** Revision of the last event that is known; -1: none. */
  get #seq(): number {
    return this.#ring.head?.seq ?? -1;
  }

  #present(name: string): Key {
    return present(this.#ring.named(name), `key "${name}"`);
  }

  /** @param decide the fact to record, null when there is none */
  #change(decide: () => KeyFact | null): Promise<void> {
    return this.#tasks.track(
      this.#changes.run(() =>
        handleCommand({
          read: () => this.#current(),
          decide,
          append: (fact) => this.#append(fact),
          limit: { conflicts: MAX_CONFLICTS, error: (cause) => new KeysContended({ cause }) },
        }),
      ),
    );
  }

  async #current(): Promise<void> {
    if (this.#tasks.isEnding) throw new ServiceStopping();
    await this.#readOn();
    this.#assertSound();
  }

  async #append(fact: KeyFact | null): Promise<void> {
    if (fact === null) return;
    const after = { stream: KEYS_STREAM, subject: 'all', head: this.#ring.head, facts: [fact] };
    const { recorded } = await appendFacts(this.#options, after, this.#tasks.signal);
    this.#adopt(recorded);
  }

  /** Folds the events that are not known yet. @throws {KeysCorrupt} */
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

  /** Folds those events that are not known yet, and notifies the listeners. */
  #adopt(events: readonly KeyEvent[]): void {
    let isChanged = false;
    for (const event of events) {
      if (event.seq !== this.#seq + 1) continue;
      this.#ring.take(event);
      isChanged = true;
    }
    if (isChanged) for (const listener of this.#listeners) listener();
  }

  /** The event when it follows the last one that is known; null: it does not. */
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

  /** A caller whose key was revoked after they were authenticated changes no key. @throws {KeyEnded} */
  #assertStands(actor: string | null): void {
    const key = actor === null ? undefined : this.#ring.named(actor);
    const end = key === undefined ? null : keyEnded(key, this.#options.system.now());
    if (key !== undefined && end !== null) throw new KeyEnded({ name: key.name, end });
  }

  /** With unreadable keys nobody is authenticated. @throws {KeysCorrupt} */
  #assertSound(): void {
    if (this.#corruption !== null) throw this.#corruption;
  }
}

/** Whether a text has the form of a key; only then is the log read. */
function isKeyText(text: string): boolean {
  return KEY_FORM.test(text);
}

/** Days as text compare as days. Clocks of instances may differ by one. */
function isNoted(lastUsed: string | null, day: string): boolean {
  return lastUsed !== null && lastUsed >= day;
}
