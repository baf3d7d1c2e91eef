/** Checks a run's hash chain where it is looked at, without trust in the service. */
import type { RunEvent } from '../../client/run-events.js';
import { canonical } from '../../eventsourcing/canonical-json.js';

/** Stands for the hash before a run's first event. */
const GENESIS_HASH = '0'.repeat(64);

/** What is used of WebCrypto's `SubtleCrypto`. */
export interface Digester {
  digest(algorithm: 'SHA-256', data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
}

/** What a check has found. */
export interface ChainResult {
  /** Events that were checked and follow from those before them. */
  readonly checked: number;
  /** Whether all that were given do. */
  readonly valid: boolean;
  /** The first that does not; null: there is none. */
  readonly firstDifference: { readonly seq: number; readonly what: string } | null;
  /** Hash of the last that follows; 64 zeros before the first. */
  readonly headHash: string;
}

/** The fields that the check reads. */
export type ChainedEvent = Pick<RunEvent, 'seq' | 'id' | 'type' | 'at' | 'data' | 'hash'>;

/** Checks events as they come; each once. One check at a time: a second waits for the first. */
export class ChainCheck {
  readonly #subtle: Digester;
  #result: ChainResult = { checked: 0, valid: true, firstDifference: null, headHash: GENESIS_HASH };
  #turn: Promise<unknown> = Promise.resolve();

  constructor(subtle: Digester) {
    this.#subtle = subtle;
  }

  /** The result so far. */
  get result(): ChainResult {
    return this.#result;
  }

  /**
   * Checks those of a run's events, given from its first on, that were not checked yet. After a difference no later event
   * is looked at.
   *
   * @throws what the digester throws; asked again, it goes on from the last event that was checked
   */
  async check(events: readonly ChainedEvent[]): Promise<ChainResult> {
    const checked = this.#turn.then(() => this.#goOn(events));
    this.#turn = checked.catch(() => undefined);
    return await checked;
  }

  async #goOn(events: readonly ChainedEvent[]): Promise<ChainResult> {
    for (let next = events[this.#result.checked]; next !== undefined; next = events[this.#result.checked]) {
      if (this.#result.firstDifference !== null) break;
      const what = await this.#differenceOf(next);
      this.#result =
        what === null
          ? { ...this.#result, checked: this.#result.checked + 1, headHash: next.hash }
          : { ...this.#result, valid: false, firstDifference: { seq: this.#result.checked, what } };
    }
    return this.#result;
  }

  async #differenceOf(event: ChainedEvent): Promise<string | null> {
    const { checked, headHash } = this.#result;
    if (event.seq !== checked) return `event ${event.seq} is in place of event ${checked}`;
    const text = hashedText(event);
    if (text === null) return 'its data is no JSON that a hash can cover';
    const hash = await sha256(this.#subtle, headHash + text);
    return hash === event.hash ? null : 'its hash does not follow from the event before it and its own fields';
  }
}

function hashedText({ at, data, id, seq, type }: ChainedEvent): string | null {
  try {
    return canonical({ at, data, id, seq, type });
  } catch {
    return null;
  }
}

async function sha256(subtle: Digester, text: string): Promise<string> {
  const bytes = new Uint8Array(await subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
