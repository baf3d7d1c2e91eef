/**
 * The checkpoints of the ledger: signed by this service, recorded in a stream of their own, cosigned by witnesses. One that
 * contradicts a recorded one is never signed.
 */
import type { RevisionConflict } from '../eventlog/errors.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import type { AppendDeps, StreamHead } from '../eventsourcing/aggregate.js';
import { changeAggregate, headAt } from '../eventsourcing/aggregate.js';
import { TaskTracker, Sequencer } from '../system/async/tasks.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';
import { reasonOf } from '../system/untrusted.js';
import { LedgerCorrupt } from './errors.js';
import type { CheckpointFact } from './events.js';
import { CHECKPOINTS_STREAM, checkpointEventOf, lackOf } from './events.js';
import type { Ledger } from './ledger.js';
import type { Checkpoint, NoteSigner, VerifierKey } from './note.js';
import { checkpointIn, checkpointText, signatureLine } from './note.js';

/** Time between two looks whether a checkpoint is due, in milliseconds. */
const LOOK_MS = 1_000;
/** How long the append of a checkpoint is tried, in milliseconds. */
const APPEND_MS = 5_000;
/** Time until a witness that failed is asked again, in milliseconds. */
const WITNESS_RETRY_MS = 30_000;
/** Events that a start reads back to find the newest checkpoint and the newest cosignature of each witness. */
const READ_BACK = 1_000;

export interface Witness {
  readonly key: VerifierKey;
  /** Address without `/add-checkpoint`. */
  readonly url: string;
}

export interface CheckpointsDeps extends AppendDeps {
  readonly log: EventLog;
  readonly system: System;
  readonly logger: Logger;
  readonly ledger: Ledger;
  readonly members: { isInTurn(subject: string): boolean };
  readonly origin: string;
  /** Null if this instance has no key: it then signs nothing. */
  readonly signer: NoteSigner | null;
  readonly intervalMs: number;
  readonly witnesses: readonly Witness[];
  /** Posts to a witness; gives up in time. */
  readonly post: (
    url: string,
    body: string,
    signal: AbortSignal,
  ) => Promise<{ readonly status: number; readonly body: string }>;
}

interface Recorded extends Checkpoint {
  readonly note: string;
  /** ISO 8601. */
  readonly at: string;
}

interface Cosigned {
  readonly size: number;
  readonly at: string;
  readonly line: string;
}

export class Checkpoints {
  readonly categories = ['checkpoints'];
  readonly #deps: CheckpointsDeps;
  readonly #tasks = new TaskTracker();
  readonly #appends = new Sequencer();
  #head: StreamHead | null = null;
  #newest: Recorded | null = null;
  /** The newest cosignature of each witness, by name. */
  readonly #cosigned = new Map<string, Cosigned>();
  /** Witnesses that are being asked, or that rest after a failure, by name. */
  readonly #busy = new Set<string>();
  #fault: string | null = null;
  /** Whether another key than that of this service has signed the newest checkpoint: then a new one is due. */
  #isOtherKey = false;

  constructor(deps: CheckpointsDeps) {
    this.#deps = deps;
  }

  /** Reads the newest checkpoint. @throws {LedgerCorrupt | LogUnavailable} */
  async load(): Promise<void> {
    const newest = await lastEvent(this.#deps.log, CHECKPOINTS_STREAM);
    this.#head = newest && { ...headAt(newest), seq: Math.max(-1, newest.revision - READ_BACK) };
    await this.#readOn();
    const { signer, logger, origin } = this.#deps;
    this.#isOtherKey = signer !== null && this.#newest !== null && !isSignedBy(this.#newest, signer.key);
    const hint = 'signing a new one. Restore the earlier key if this is not meant';
    if (this.#isOtherKey) logger.info({ origin }, `ledger: the key is not the one of the newest checkpoint; ${hint}`);
  }

  /**
   * Compares the folded ledger with the newest checkpoint. Returns what the ledger lacks, as a sentence, or null. What it lacks
   * is then the fault.
   *
   * @throws {LogUnavailable}
   */
  async loss(): Promise<string | null> {
    const lack = this.#newest && (await lackOf(this.#deps.ledger.tree, this.#newest));
    this.#fault = lack?.what ?? null;
    return this.#fault;
  }

  /** Signs from now on. */
  start(): void {
    const { system } = this.#deps;
    const onFault = (error: unknown): void => this.#report(error);
    this.#tasks.repeat(() => this.#look(), { system, everyMs: LOOK_MS, onFault });
  }

  async #look(): Promise<void> {
    this.#askWitnesses();
    await this.#sign();
  }

  /** Receives each event of the log. */
  onEventRecorded(event: RecordedEvent): void {
    try {
      this.#take(event);
    } catch (error) {
      this.#report(error);
    }
  }

  /** The newest checkpoint with its cosignatures as a signed note, or null if there is none. */
  get note(): string | null {
    if (this.#newest === null) return null;
    const { note, size } = this.#newest;
    const lines = [...this.#cosigned.values()].filter((each) => each.size === size).map(({ line }) => `${line}\n`);
    return note + lines.join('');
  }

  /** The newest checkpoint, or null if there is none. */
  get newest(): { readonly size: number; readonly at: string } | null {
    return this.#newest;
  }

  /** Number of the first leaves that can be proved by the newest checkpoint. */
  get covered(): number {
    const size = this.#newest?.size ?? 0;
    // The checkpoint of another instance may be known here before its last leaves are.
    return this.#fault === null && size <= this.#deps.ledger.tree.size ? size : 0;
  }

  /** The configured witnesses with their newest cosignatures; size 0 and null if there is none. */
  get witnesses(): readonly { readonly name: string; readonly size: number; readonly at: string | null }[] {
    return this.#deps.witnesses.map(({ key: { name } }) => {
      const cosigned = this.#cosigned.get(name);
      return { name, size: cosigned?.size ?? 0, at: cosigned?.at ?? null };
    });
  }

  /** Why no checkpoint is signed any more, or null. */
  get fault(): string | null {
    return this.#fault;
  }

  /** Signs what has no checkpoint yet. */
  async finish(): Promise<void> {
    await this.#sign({ isLast: true }).catch((error: unknown) => this.#tasks.isEnding || this.#report(error));
  }

  /** Signs no more checkpoints. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  /** Signs a checkpoint if one is due. */
  async #sign({ isLast = false } = {}): Promise<void> {
    const { ledger, signer, origin, logger } = this.#deps;
    const { size } = ledger.tree;
    // 1. The ledger has grown, or the key is another one, and it is time.
    const lacksOne = (): boolean => size > (this.#newest?.size ?? 0) || (this.#isOtherKey && size > 0);
    const isDue = (): boolean => lacksOne() && (isLast || this.#isTime());
    if (signer === null || this.#fault !== null || !isDue()) return;
    // 2. The tree still contains what the newest checkpoint covers.
    const reason = await this.loss();
    if (reason !== null)
      return logger.error({ reason }, 'ledger: it contradicts its newest checkpoint; signing no more, runs go on');
    // 3. Sign, and record it unless another instance was faster.
    const note = signer.sign(checkpointText({ origin, size, root: await ledger.tree.rootAt(size) }));
    await this.#append(() => (isDue() ? [{ type: 'CheckpointSigned', data: { note } }] : []));
    this.#isOtherKey = false;
    this.#askWitnesses();
  }

  #isTime(): boolean {
    const { system, intervalMs } = this.#deps;
    if (this.#newest === null) return true;
    const sinceMs = Math.abs(Date.parse(system.now()) - Date.parse(this.#newest.at));
    return sinceMs >= intervalMs;
  }

  #report(err: unknown): void {
    if (!this.#tasks.isEnding) this.#deps.logger.error({ err }, 'ledger: failed to record a checkpoint; trying again');
  }

  /** Records facts that are decided on the newest events. */
  async #append(decide: () => readonly CheckpointFact[]): Promise<void> {
    const change = {
      stream: CHECKPOINTS_STREAM,
      subject: CHECKPOINTS_STREAM,
      headOf: (head: StreamHead | null) => head,
      decide,
      maxAppendMs: APPEND_MS,
      read: async (conflict: RevisionConflict | null) => {
        if (conflict !== null) await this.#readOn();
        return this.#head;
      },
    };
    await this.#appends.run(() => changeAggregate(this.#deps, change, this.#tasks.signal));
    await this.#readOn();
  }

  async #readOn(): Promise<void> {
    const range = { from: (this.#head?.seq ?? -1) + 1 };
    for await (const event of this.#deps.log.readStream(CHECKPOINTS_STREAM, range)) this.#take(event);
  }

  /** Folds an event; one that is folded has no effect. */
  #take(recorded: RecordedEvent): void {
    if (recorded.revision <= (this.#head?.seq ?? -1)) return;
    const { type, data, at } = checkpointEventOf(recorded);
    if (type === 'CheckpointCosigned') this.#cosigned.set(data.name, { size: data.size, line: data.line, at });
    else {
      const checkpoint = checkpointOf(recorded, data.note);
      // Witnesses know a ledger by its origin: checkpoints of another origin do not count.
      if (checkpoint.origin === this.#deps.origin) this.#newest = { ...checkpoint, note: data.note, at };
    }
    // Only now: a start must not pass over an event that cannot be read.
    this.#head = headAt(recorded);
  }

  /** Asks each witness that has not cosigned the newest checkpoint, in the background. */
  #askWitnesses(): void {
    const { witnesses, members, system } = this.#deps;
    const newest = this.#newest;
    if (newest === null || this.#tasks.isEnding || !members.isInTurn(CHECKPOINTS_STREAM)) return;
    for (const witness of witnesses) {
      const { name } = witness.key;
      if (this.#busy.has(name) || (this.#cosigned.get(name)?.size ?? 0) >= newest.size) continue;
      this.#busy.add(name);
      const asking = this.#tasks.track(this.#ask(witness, newest));
      asking.then(
        () => this.#busy.delete(name),
        (err: unknown) => {
          if (this.#tasks.isEnding) return;
          this.#deps.logger.error({ witness: name, err }, 'ledger: a witness has not cosigned; asking again in 30 s');
          system.after(WITNESS_RETRY_MS, () => this.#busy.delete(name));
        },
      );
    }
  }

  /** Asks a witness for its cosignature (C2SP tlog-witness, add-checkpoint), and records it. */
  async #ask({ key, url }: Witness, { size, note, text }: Recorded): Promise<void> {
    const { post, ledger } = this.#deps;
    const { signal } = this.#tasks;
    let old = Math.min(size, this.#cosigned.get(key.name)?.size ?? 0);
    for (let tries = 0; ; tries += 1) {
      // 1. Send the checkpoint, with the proof that it continues what the witness has seen.
      const proof = await ledger.tree.consistency(old, size);
      const lines = proof.map((hash) => `${hash.toString('base64')}\n`).join('');
      const { status, body } = await post(`${url}/add-checkpoint`, `old ${old}\n${lines}\n${note}`, signal);
      // 2. The witness has seen another size: try once more from there.
      const seen = /^(?:0|[1-9]\d{0,15})\n$/.test(body) ? Number(body) : null;
      if (status === 409 && seen !== null && seen <= size && tries === 0) {
        old = seen;
        continue;
      }
      if (status === 409 && seen !== null)
        throw new Error(`it has seen ${seen} leaves, and this ledger has ${size}: it may be an older copy`);
      if (status !== 200) throw new Error(`it answers ${status}`);
      // 3. Record its signature.
      const line = signatureLine({ text, lines: body.split('\n') }, key);
      const fact = { type: 'CheckpointCosigned', data: { size, name: key.name, line } } as const;
      return await this.#append(() => ((this.#cosigned.get(key.name)?.size ?? 0) < size ? [fact] : []));
    }
  }
}

/** The checkpoint of a recorded note. @throws {LedgerCorrupt} */
function checkpointOf({ stream, revision: seq }: RecordedEvent, note: string): Checkpoint {
  try {
    return checkpointIn(note);
  } catch (cause) {
    throw new LedgerCorrupt({ stream, seq, reason: reasonOf(cause) }, { cause });
  }
}

function isSignedBy(checkpoint: Checkpoint, key: VerifierKey): boolean {
  try {
    signatureLine(checkpoint, key);
    return true;
  } catch {
    return false;
  }
}
