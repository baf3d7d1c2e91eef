/**
 * Erases runs and documents: adds the leaf to the ledger, then removes the events from the log, then what is left of their texts
 * in the files of this instance. After a crash in between, the next start or another instance completes the erasure.
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
import { LEDGER_STREAM, leafOf } from '../ledger/events.js';
import type { Erasing, Ledger } from '../ledger/ledger.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { RunSummary } from '../projections/run-summary.js';
import { RunErased, RunUnfinished, RunUnknown } from '../run/errors.js';
import { runStream } from '../run/events.js';
import { Sequencer, TaskTracker } from '../system/async/tasks.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';

/** Most runs that are erased together. */
const MAX_TOGETHER = 500;
/** Leaves among which a start looks for erasures to complete. */
const MAX_READ_BACK = 10_000;
/** Time between two looks for erasures of other instances, and for failed ones, in milliseconds. */
const LOOK_MS = 2_000;

export interface ErasuresDeps {
  readonly log: EventLog;
  readonly ledger: Pick<Ledger, 'erase'>;
  readonly history: Pick<History, 'families' | 'stored' | 'flush' | 'zeroErased'>;
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
interface ErasedStream extends Pick<ErasureLeaf, 'what' | 'id'> {
  readonly stream: string;
}

export class Erasures {
  readonly categories = ['ledger'];
  readonly #deps: ErasuresDeps;
  readonly #tasks = new TaskTracker();
  /** Erasures with a leaf that this instance has not completed, by stream. */
  readonly #pending = new Map<string, ErasedStream>();
  /** Erasures of documents run one after the other, so that one of several equal requests finds the document. */
  readonly #ofDocuments = new Sequencer();

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

  async #eraseRuns(runIds: readonly string[], cause: ErasureCause): Promise<void> {
    const { log, projector, history } = this.#deps;
    // 1. All have ended.
    const ends = new Map(await this.#endsOf(runIds));
    // 2. So have the runs that their councils have started, and those that wait for them. The views know all of these.
    await projector.waitFor(await log.head(), this.#tasks.signal);
    const stored = new Map((await history.families(runIds)).map((run) => [run.id, run]));
    for (const runId of runIds) await this.#assertNotAwaited(runId, stored.get(runId)?.parentRun?.runId ?? null);
    for (const [id, end] of await this.#endsOf([...stored.keys()].filter((each) => !ends.has(each)))) ends.set(id, end);
    // 3. Erase all. A run comes after those below it: after a crash in between it is there to be erased again.
    const erasing: Erasing[] = [];
    for (const id of new Set([...stored.keys(), ...runIds])) {
      const [end, run] = [ends.get(id) ?? null, stored.get(id)];
      if (end === null) continue;
      const kept = run && { kept: JSON.stringify(withoutTexts(run)) };
      erasing.push({ leaf: this.#leafOf('run', id, end, cause), after: -1, ...kept });
    }
    for (let from = 0; from < erasing.length; from += MAX_TOGETHER)
      await this.#erase(erasing.slice(from, from + MAX_TOGETHER));
  }

  async #erase(erasing: readonly Erasing[]): Promise<void> {
    // 1. Add the leaves. Once they are folded, lists and searches here hold the texts no more.
    await this.#deps.ledger.erase(erasing);
    // 2. Remove the events and every byte that is left. An earlier leaf may be that of an erasure that was cut off.
    for (const { leaf, kept } of erasing) {
      const erased = erasedStream(leaf, kept);
      this.#pending.set(erased.stream, erased);
    }
    await this.#complete();
  }

  #leafOf(what: ErasureLeaf['what'], id: string, last: RecordedEvent, { actor, reason }: ErasureCause): ErasureLeaf {
    const erasedAt = this.#deps.system.now();
    return { kind: 'erasure', what, id, events: last.revision + 1, headHash: hashOf(last), erasedAt, reason, actor };
  }

  /** A parent that has not ended continues with the run after a crash. @throws {RunUnfinished} */
  async #assertNotAwaited(runId: string, parent: string | null): Promise<void> {
    const status = parent === null ? null : (await this.#deps.history.stored(parent))?.status;
    if (parent !== null && status && status !== 'completed' && status !== 'failed')
      throw new RunUnfinished({ runId, parent });
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

  async #eraseDocument(id: string, cause: ErasureCause): Promise<void> {
    const last = await lastEvent(this.#deps.log, documentStream(id));
    if (last === null) throw new DocumentUnknown({ documentId: id });
    const after = Number(last.stream.split('+')[1] ?? -1);
    await this.#erase([{ leaf: this.#leafOf('document', id, last, cause), after, kept: last.stream }]);
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

  /** Removes the events of all erasures that have a leaf, and what is left of their texts here. */
  async #complete(): Promise<void> {
    const { log, history, documents, forget, projector } = this.#deps;
    const erased = [...this.#pending.values()];
    if (erased.length === 0) return;
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

  /** Completes the erasures that a crash or a failure has cut off, and from then on in the background all that are pending. */
  async recover(): Promise<void> {
    const { log, documents, system, logger } = this.#deps;
    for await (const event of log.readStream(LEDGER_STREAM, { direction: 'backwards', max: MAX_READ_BACK })) {
      const erased = erasedBy(event);
      if (erased === null) continue;
      this.#pending.set(erased.stream, erased);
      // While its events are there, it was not uploaded again.
      if (erased.what === 'document' && (await lastEvent(log, erased.stream))?.stream === erased.stream)
        documents.onDocumentErased(erased.id);
    }
    const onFault = (err: unknown): void =>
      logger.error({ err }, 'erasures: failed to remove the events of erased runs; trying again');
    await this.#tasks.track(this.#complete()).catch(onFault);
    this.#tasks.repeat(() => this.#complete(), { system, everyMs: LOOK_MS, onFault });
  }

  /** Receives each leaf; another instance may have added it, and its texts are in the files of this one too. */
  onEventFolded(event: RecordedEvent): void {
    const erased = erasedBy(event);
    if (erased === null) return;
    this.#pending.set(erased.stream, erased);
    if (erased.what === 'document') this.#deps.documents.onDocumentErased(erased.id);
  }

  /** Waits for the erasures under way; the next start completes others. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }
}

/** What an event of the log erases, or null if it is no erasure or cannot be read. */
export function erasedBy(event: RecordedEvent): ErasedStream | null {
  if (event.stream !== LEDGER_STREAM) return null;
  try {
    const leaf = leafOf(event);
    if (leaf.kind === 'run') return null;
    return erasedStream(leaf, event.metadata['kept']);
  } catch (error) {
    if (error instanceof LedgerCorrupt) return null;
    throw error;
  }
}

function erasedStream({ what, id }: ErasureLeaf, kept = ''): ErasedStream {
  if (what === 'run') return { what, id, stream: runStream(id) };
  return { what, id, stream: documentIdOf(kept) === id ? kept : documentStream(id) };
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
