/**
 * Erases runs: first the leaf in the ledger, then the events in the log, then what is left of their texts in the files of this
 * instance. After a crash in between, the next start or another instance completes it.
 */
import type { Documents } from './documents.js';
import { DocumentUnknown } from '../documents/errors.js';
import { documentStream } from '../documents/events.js';
import type { EventLog, RecordedEvent } from '../eventlog/port.js';
import { lastEvent } from '../eventlog/port.js';
import { hashOf } from '../eventsourcing/hash-chain.js';
import { erasureIn } from '../ledger/erased.js';
import type { ErasureLeaf } from '../ledger/events.js';
import { LEDGER_STREAM, leafOf } from '../ledger/events.js';
import type { Ledger } from '../ledger/ledger.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { RunSummary } from '../projections/run-summary.js';
import { RunErased, RunUnfinished, RunUnknown } from '../run/errors.js';
import type { Erasure } from '../run/errors.js';
import { runStream } from '../run/events.js';
import { Sequencer } from '../system/async/sequencer.js';
import { TaskTracker } from '../system/async/task-tracker.js';
import type { Logger } from '../system/logger.js';
import type { System } from '../system/system.js';

/** Most runs that are erased together. */
const MAX_TOGETHER = 500;
/** Number of runs that one query lists. */
const PAGE = 100;
/** Wait before an instance completes the erasures of another one, in milliseconds. */
const COMPLETE_AFTER_MS = 1_000;
/** Wait after a failure, in milliseconds. */
const RETRY_MS = 5_000;

export interface ErasuresDeps {
  readonly log: EventLog;
  readonly ledger: Pick<Ledger, 'erase' | 'erasures'>;
  readonly history: Pick<History, 'stored' | 'list' | 'flush' | 'zeroErased'>;
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

/** A run to erase, with its last event, or null if it is erased. */
interface DueRun {
  readonly id: string;
  readonly end: RecordedEvent | null;
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

  async #eraseRuns(runIds: readonly string[], cause: ErasureCause): Promise<void> {
    const { log, projector } = this.#deps;
    const due: DueRun[] = [];
    for (const id of runIds) due.push({ id, end: await this.#endOf(id) });
    // 1. The runs that their councils have started, as far as the views here know all of them.
    await projector.waitFor(await log.head(), this.#tasks.signal);
    for (const { id } of due) await this.#assertNotAwaited(id);
    const all: DueRun[] = [];
    for (const each of due) all.push(...(await this.#below(each)), each);
    for (let from = 0; from < all.length; from += MAX_TOGETHER)
      await this.#eraseEnded(all.slice(from, from + MAX_TOGETHER), cause);
  }

  /** Its parent continues with it after a crash. @throws {RunUnfinished} */
  async #assertNotAwaited(runId: string): Promise<void> {
    const parent = (await this.#deps.history.stored(runId))?.parentRun?.runId;
    if (parent === undefined) return;
    try {
      await this.#endOf(parent);
    } catch (error) {
      if (error instanceof RunUnfinished) throw new RunUnfinished({ runId, parent });
      if (!(error instanceof RunUnknown)) throw error;
    }
  }

  /** The runs below a run, each before the one that has started it: after a crash the run is there to be erased again. */
  async #below({ id, end }: DueRun): Promise<readonly DueRun[]> {
    if (end === null) return [];
    const children: string[] = [];
    for (let hasMore = true; hasMore;) {
      const page = { filter: { parentRun: id }, limit: PAGE, offset: children.length };
      const runs = await this.#deps.history.list(page);
      children.push(...runs.map((run) => run.id));
      hasMore = runs.length === PAGE;
    }
    const below: DueRun[] = [];
    for (const child of children) {
      const each = { id: child, end: await this.#endOf(child) };
      below.push(...(await this.#below(each)), each);
    }
    return below;
  }

  async #eraseEnded(due: readonly DueRun[], { actor, reason }: ErasureCause): Promise<void> {
    const { ledger, history, system } = this.#deps;
    const erasedAt = system.now();
    const leaves: ErasureLeaf[] = [];
    const kept = new Map<string, string>();
    // 2. What is erased: the leaf covers the whole record by its last hash.
    for (const { id, end } of due) {
      if (end === null) continue;
      const ended = { events: end.revision + 1, headHash: hashOf(end), erasedAt };
      leaves.push({ kind: 'erasure', what: 'run', id, ...ended, reason, actor });
      const run = await history.stored(id);
      if (run !== null) kept.set(id, JSON.stringify(withoutTexts(run)));
    }
    // 3. The leaves. Once they are folded, lists and searches here hold the runs no more.
    if (leaves.length > 0) await ledger.erase(leaves, { kept });
    // 4. The events and every byte that is left.
    await this.#complete(due.map(({ id }) => ({ what: 'run', id, stream: runStream(id) })));
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
    if (event.stream !== LEDGER_STREAM) return;
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

/** What a leaf erases, or null if it erases nothing. */
function erasedBy(event: RecordedEvent): Erased | null {
  const leaf = leafOf(event);
  if (leaf.kind !== 'erasure') return null;
  const { what, id } = leaf;
  return { what, id, stream: what === 'run' ? runStream(id) : (event.metadata['kept'] ?? documentStream(id)) };
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

/** What the totals count of a run. */
function withoutTexts({ finalOutput: _, earlierStarters: __, ...run }: RunSummary): RunSummary {
  return { ...run, inputTopic: '', finalDraft: null, error: null, session: null, actor: null, approvers: null };
}
