/**
 * Erases runs: first the leaf in the ledger, then the events in the log, then what is left of their texts in the files of this
 * instance. After a crash in between, the next start or another instance completes it.
 */
import type { Documents } from './documents.js';
import { DocumentUnknown } from '../documents/errors.js';
import { documentIdOf, documentStream } from '../documents/events.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { hashOf } from '../eventsourcing/hash-chain.js';
import type { ParentRun } from '../generated/schemas.js';
import { LedgerCorrupt } from '../ledger/errors.js';
import type { ErasureLeaf } from '../ledger/events.js';
import { LEDGER_STREAM, erasureIn, leafOf } from '../ledger/events.js';
import type { Ledger } from '../ledger/ledger.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { RunSummary } from '../projections/run-summary.js';
import { RunErased, RunUnfinished, RunUnknown } from '../run/errors.js';
import type { Erasure } from '../run/errors.js';
import { runStream } from '../run/events.js';
import { Sequencer, TaskTracker } from '../system/async/tasks.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';

/** Most runs that are erased together. */
const MAX_TOGETHER = 500;
/** Wait before an instance completes the erasures of another one, in milliseconds. */
const COMPLETE_AFTER_MS = 1_000;
/** Wait after a failure, in milliseconds. */
const RETRY_MS = 5_000;

export interface ErasuresDeps {
  readonly log: EventLog;
  readonly ledger: Pick<Ledger, 'erase' | 'erasures'>;
  readonly history: Pick<History, 'families' | 'flush' | 'zeroErased'>;
  readonly projector: Pick<Projector, 'waitFor'>;
  readonly documents: Pick<Documents, 'onDocumentErased' | 'zeroErased'>;
  /** Forgets what is in memory of an erased run. */
  readonly forget: (runId: string) => void;
  readonly system: Pick<System, 'after' | 'now'>;
  readonly logger: Logger;
}

/** By whom and why. */
export interface ErasureCause {
  readonly actor: string | null;
  readonly reason: string | null;
}

/** An erasure as it is recorded, with the stream that it removes. */
interface Erased extends Pick<ErasureLeaf, 'what' | 'id'> {
  readonly stream: string;
}

export class Erasures {
  readonly categories = ['ledger'];
  readonly #deps: ErasuresDeps;
  readonly #tasks = new TaskTracker();
  /** Erasures with a leaf that this instance has not completed, by stream. */
  readonly #pending = new Map<string, Erased>();
  /** Erasures of documents run one after the other, so that one of several equal requests finds the document. */
  readonly #ofDocuments = new Sequencer();
  #cancelTimer: (() => void) | null = null;

  constructor(deps: ErasuresDeps) {
    this.#deps = deps;
  }

  /**
   * Erases runs that have ended, with the runs that their councils have started; those that are erased already stay as they
   * are.
   *
   * @param runIds at most 500
   * @throws {RunUnknown | RunUnfinished} one of them: nothing is erased
   * @throws {ServiceStopping | LogUnavailable | LogFull} the erasure is completed later if its leaf is recorded
   */
  eraseRuns(runIds: readonly string[], cause: ErasureCause): Promise<void> {
    return this.#tasks.track(this.#eraseRuns(runIds, cause));
  }

  async #eraseRuns(runIds: readonly string[], { actor, reason }: ErasureCause): Promise<void> {
    const { log, projector, history, ledger, system } = this.#deps;
    // 1. All have ended.
    const ends = new Map(await this.#endsOf(runIds));
    // 2. So have the runs that their councils have started, and those that wait for them. The views know all of these.
    await projector.waitFor(await log.head(), this.#tasks.signal);
    const stored = new Map((await history.families(runIds)).map((run) => [run.id, run]));
    for (const runId of runIds) await this.#assertNotAwaited(runId, stored.get(runId)?.parentRun?.runId ?? null);
    for (const [id, end] of await this.#endsOf([...stored.keys()].filter((each) => !ends.has(each)))) ends.set(id, end);
    // A run comes after those below it: after a crash in between it is there to be erased again.
    const ids = [...new Set([...stored.keys(), ...runIds])];
    for (let from = 0; from < ids.length; from += MAX_TOGETHER) {
      const together = ids.slice(from, from + MAX_TOGETHER);
      const leaves: ErasureLeaf[] = [];
      const kept = new Map<string, string>();
      for (const id of together) {
        const [end, run] = [ends.get(id) ?? null, stored.get(id)];
        if (end === null) continue;
        const ended = { events: end.revision + 1, headHash: hashOf(end), erasedAt: system.now() };
        leaves.push({ kind: 'erasure', what: 'run', id, ...ended, reason, actor });
        if (run !== undefined) kept.set(id, JSON.stringify(withoutTexts(run)));
      }
      // 3. The leaves. Once they are folded, lists and searches here hold the runs no more.
      if (leaves.length > 0) await ledger.erase(leaves, { kept, after: -1 });
      // 4. The events and every byte that is left.
      await this.#complete(together.map((id) => ({ what: 'run', id, stream: runStream(id) })));
    }
  }

  /** A parent that has not ended continues with the run after a crash. @throws {RunUnfinished} */
  async #assertNotAwaited(runId: string, parent: string | null): Promise<void> {
    if (parent === null) return;
    try {
      await this.#endOf(parent);
    } catch (error) {
      if (error instanceof RunUnfinished) throw new RunUnfinished({ runId, parent });
      if (!(error instanceof RunUnknown)) throw error;
    }
  }

  #endsOf(runIds: readonly string[]): Promise<readonly (readonly [string, RecordedEvent | null])[]> {
    return Promise.all(runIds.map(async (id) => [id, await this.#endOf(id)] as const));
  }

  /**
   * Erases a document. An upload of the same file begins another stream.
   *
   * @throws {DocumentUnknown | ServiceStopping | LogUnavailable | LogFull}
   */
  eraseDocument(documentId: string, cause: ErasureCause): Promise<void> {
    return this.#tasks.track(this.#ofDocuments.run(() => this.#eraseDocument(documentId, cause)));
  }

  async #eraseDocument(id: string, { actor, reason }: ErasureCause): Promise<void> {
    const { log, ledger, system } = this.#deps;
    const last = await lastEvent(log, documentStream(id));
    if (last === null) throw new DocumentUnknown({ documentId: id });
    const { stream } = last;
    const erased = { events: last.revision + 1, headHash: hashOf(last), erasedAt: system.now() };
    const leaf = { kind: 'erasure', what: 'document', id, ...erased, reason, actor } as const;
    const after = Number(stream.split('+')[1] ?? -1);
    await ledger.erase([leaf], { kept: new Map([[id, stream]]), after });
    await this.#complete([{ what: 'document', id, stream }]);
  }

  /** The event that ended a run, or null if the run is erased. @throws {RunUnknown | RunUnfinished} */
  async #endOf(runId: string): Promise<RecordedEvent | null> {
    try {
      const last = await lastEvent(this.#deps.log, runStream(runId));
      if (last === null) throw new RunUnknown({ runId });
      if (last.type !== 'RunCompleted' && last.type !== 'RunFailed') throw new RunUnfinished({ runId });
      return last;
    } catch (error) {
      if (error instanceof RunErased) return null;
      throw error;
    }
  }

  async #complete(erased: readonly Erased[]): Promise<void> {
    const { log, history, documents, forget, projector } = this.#deps;
    // The views here may still have to fold the events, and then the leaf: before that, they would write the texts again.
    await projector.waitFor(await log.head(), this.#tasks.signal);
    for (const { what, id } of erased) if (what === 'run') forget(id);
    // Reads by id must not find the rows any more, even if the removal fails.
    await history.flush();
    await log.remove(erased.map(({ stream }) => stream));
    await history.zeroErased();
    if (erased.some(({ what }) => what === 'document')) await documents.zeroErased();
    for (const { stream } of erased) this.#pending.delete(stream);
  }

  /** Completes what a crash or a failure has cut off before the start. */
  async recover(): Promise<void> {
    const { log, documents, ledger } = this.#deps;
    for (const event of ledger.erasures) {
      const erased = erasedBy(event);
      if (erased === null) continue;
      this.#pending.set(erased.stream, erased);
      // While its events are there, it was not uploaded again.
      if (erased.what === 'document' && (await lastEvent(log, erased.stream))?.stream === erased.stream)
        documents.onDocumentErased(erased.id);
    }
    await this.#completePending();
  }

  /** Receives each leaf; another instance may have added it, and its texts are in the files of this one too. */
  onEventFolded(event: RecordedEvent): void {
    const erased = erasedBy(event);
    if (erased === null) return;
    this.#pending.set(erased.stream, erased);
    if (erased.what === 'document') this.#deps.documents.onDocumentErased(erased.id);
    this.#completeIn(COMPLETE_AFTER_MS);
  }

  #completeIn(delayMs: number): void {
    const { system } = this.#deps;
    if (this.#tasks.isEnding) return;
    this.#cancelTimer ??= system.after(delayMs, () => {
      this.#cancelTimer = null;
      void this.#completePending();
    });
  }

  async #completePending(): Promise<void> {
    if (this.#pending.size === 0) return;
    try {
      await this.#tasks.track(this.#complete([...this.#pending.values()]));
    } catch (err) {
      if (this.#tasks.isEnding) return;
      this.#deps.logger.error({ err }, 'erasures: failed to remove the events of erased runs; trying again');
      this.#completeIn(RETRY_MS);
    }
  }

  /** Waits for the erasures under way; the next start completes others. */
  async stop(): Promise<void> {
    this.#cancelTimer?.();
    await this.#tasks.end();
  }
}

/** What an event of the log erases, or null if it is no erasure or cannot be read. */
export function erasedBy(event: RecordedEvent): Erased | null {
  if (event.stream !== LEDGER_STREAM) return null;
  try {
    const leaf = leafOf(event);
    if (leaf.kind === 'run') return null;
    const [{ what, id }, { kept = '' }] = [leaf, event.metadata];
    const ofDocument = documentIdOf(kept) === id ? kept : documentStream(id);
    return { what, id, stream: what === 'run' ? runStream(id) : ofDocument };
  } catch (error) {
    if (error instanceof LedgerCorrupt) return null;
    throw error;
  }
}

/**
 * The erasure of a run whose events are gone, or null if there is none. The views may lack it, because another instance has
 * recorded it a moment ago or because they are rebuilt.
 */
export async function erasureOf(
  runId: string,
  { log, history }: { readonly log: Pick<EventLog, 'readStream'>; readonly history: Pick<History, 'erasedAs'> },
): Promise<Erasure | null> {
  const known = await history.erasedAs('run', runId);
  if (known !== null) return { at: known.at, by: known.by, reason: known.reason };
  const leaf = await erasureIn(log, { what: 'run', id: runId });
  return leaf && { at: leaf.erasedAt, by: leaf.actor, reason: leaf.reason };
}

/** The number of the leaf of a document's newest erasure, or null. */
export async function documentErasedAt(
  id: string,
  { log, history }: { readonly log: Pick<EventLog, 'readStream'>; readonly history: Pick<History, 'erasedAs'> },
): Promise<number | null> {
  const known = await history.erasedAs('document', id);
  return known?.index ?? (await erasureIn(log, { what: 'document', id }))?.index ?? null;
}

/** What the totals count of a run. It names each field that stays, because what stays is in the ledger for ever. */
function withoutTexts(run: RunSummary): RunSummary {
  const { id, seq, blueprintId, parent, status, executionMode, isTrial, createdAt, completedAt, parentRun } = run;
  const { criticScore, iterationCount, failureKind, waitedMs, usage } = run;
  return {
    ...{ id, seq, blueprintId, parent, status, executionMode, isTrial, createdAt, completedAt },
    ...{ criticScore, iterationCount, failureKind, waitedMs, usage },
    ...(parentRun !== undefined && { parentRun: placeOf(parentRun) }),
    ...{ inputTopic: '', finalDraft: null, error: null, session: null, actor: null, approvers: null },
    ...{ owner: null, activeNode: null, waitingSince: null, deadlineAt: null },
  };
}

function placeOf({ runId, node, step, index }: ParentRun): ParentRun {
  return { runId, node, step, index };
}
