/** Checks a run's hash chain in the browser, without trust in the service. */
import type { RunEvent } from '../../client/run-events.js';
import { canonical } from '../../eventsourcing/canonical-json.js';

/** The previous hash of a run's first event. */
const GENESIS_HASH = '0'.repeat(64);

/** The part of WebCrypto's `SubtleCrypto` that the check needs. */
export interface Digester {
  digest(algorithm: 'SHA-256', data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
}

/** The result of a check. */
export interface ChainResult {
  /** Number of valid events, from the first. */
  readonly checked: number;
  /** Whether all given events are valid. */
  readonly valid: boolean;
  /** The first invalid event, or null if all are valid. */
  readonly firstDifference: { readonly seq: number; readonly what: string } | null;
  /** Hash of the last valid event, or 64 zeros before the first. */
  readonly headHash: string;
}

/** The fields that the check reads. */
export type ChainedEvent = Pick<RunEvent, 'seq' | 'id' | 'type' | 'at' | 'data' | 'hash'>;

/** Checks events as they arrive, each once. A second check waits for the first. */
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
   * Checks the events of a run that have not been checked, up to the first invalid one.
   *
   * @param events all events of the run, from the first
   * @throws what the digester throws; the next call resumes after the last checked event
   */
  async check(events: readonly ChainedEvent[]): Promise<ChainResult> {
    const checked = this.#turn.then(() => this.#resume(events));
    this.#turn = checked.catch(() => undefined);
    return await checked;
  }

  async #resume(events: readonly ChainedEvent[]): Promise<ChainResult> {
    for (let next = events[this.#result.checked]; next !== undefined; next = events[this.#result.checked]) {
      if (this.#result.firstDifference !== null) break;
      const what = await this.#faultOf(next);
      this.#result =
        what === null
          ? { ...this.#result, checked: this.#result.checked + 1, headHash: next.hash }
          : { ...this.#result, valid: false, firstDifference: { seq: this.#result.checked, what } };
    }
    return this.#result;
  }

  async #faultOf(event: ChainedEvent): Promise<string | null> {
    const { checked, headHash } = this.#result;
    if (event.seq !== checked) return `event ${event.seq} is in place of event ${checked}`;
    const text = hashedText(event);
    if (text === null) return 'its data is not valid JSON';
    const hash = await sha256(this.#subtle, headHash + text);
    return hash === event.hash ? null : 'its hash does not match its fields and the previous hash';
  }
}

function hashedText({ at, data, id, seq, type }: ChainedEvent): string | null {
  try {
    return canonical({ at, data, id, seq, type });
  } catch {
    return null;
  }
}

/** The SHA-256 of a text in UTF-8, as lower-case hex. */
export async function sha256(subtle: Digester, text: string): Promise<string> {
  const bytes = new Uint8Array(await subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
