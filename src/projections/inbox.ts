/**
 * The open pauses of all runs, and their changes in the log's order. Each is folded from the record of its run, so
 * that every instance reports the same.
 */
import type { GateAction } from '../generated/schemas.js';
import type { Caller } from '../keys/caller.js';
import type { Position } from '../eventlog/port.js';
import { isUnreadable } from '../run/errors.js';
import { isApprover, mayDecide } from '../run/pauses/approvals.js';
import type { RunEvent, RunFactType } from '../run/events.js';
import type { PauseApprovals } from '../run/pauses/pause-view.js';
import { approvalsAt } from '../run/pauses/pause-view.js';
import type { RunPause, RunState } from '../run/state.js';
import { openPauseOf } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import type { CorruptRuns } from './corrupt-runs.js';
import type { LogFeed } from './log-feed.js';
import type { RunPlace } from './run-list.js';
import { placeOf } from './run-list.js';
import type { RunQueries } from './run-queries.js';
import type { RunReader } from '../run/runs/reader.js';
import type { RunSummary } from './run-summary.js';

/** Rows of paused runs read at a time. */
const ROWS_AT_ONCE = 50;
/** Number of records folded at a time for one caller. Their pauses stay in memory until the caller takes them. */
const FOLDED_AT_ONCE = 4;

/** An open pause. */
export interface WaitingPause {
  readonly run: RunState;
  readonly pause: RunPause;
  /** The approvers and the votes, or null if the pause has no approval rule. */
  readonly approvals: PauseApprovals | null;
  readonly mayDecide: boolean;
  /** The caller's last decision on this run, at an earlier pause or by a vote, or null if there is none. */
  readonly lastDecision: LastDecision | null;
}

export interface LastDecision {
  readonly seq: number;
  readonly at: string;
  readonly action: GateAction;
  /** The draft for which the caller decided. */
  readonly draft: string | null;
}

/** A pause that no longer waits for the caller. */
export interface GonePause {
  readonly runId: string;
  /** Revision of its RunPaused event. */
  readonly seq: number;
  readonly at: string;
  /** The decision, or `failed` if the run ended without one, or `escalated` if others decide instead of the caller. */
  readonly outcome: GateAction | 'failed' | 'escalated';
  readonly actor: string | null;
}

export type InboxChange =
  | { readonly kind: 'waiting'; readonly pause: WaitingPause }
  | { readonly kind: 'gone'; readonly pause: GonePause };

export interface InboxFilter {
  /** Only pauses that the caller may decide. */
  readonly isMine: boolean;
  /** The blueprint of the runs, or null for all runs. */
  readonly blueprintId: string | null;
}

export interface InboxQuery extends InboxFilter {
  /** Only pauses that began at this time or later (ISO 8601, UTC, milliseconds), or null for all. */
  readonly since: string | null;
  readonly limit: number;
}

export interface InboxFollowOptions extends InboxFilter {
  /** Position after which it begins. */
  readonly after: Position | null;
  /**
   * Called with the changes in order, each exactly once, and the cursor after it; the next call waits for the promise.
   */
  readonly onChange: (change: InboxChange, cursor: string) => Promise<void>;
  /** Called with the cursor after an event that changes no wanted pause. */
  readonly onProgress: (cursor: string) => void;
  readonly signal: AbortSignal;
}

export interface InboxDeps {
  readonly queries: Pick<RunQueries, 'list'>;
  readonly reader: Pick<RunReader, 'folded'>;
  readonly logFeed: Pick<LogFeed, 'follow'>;
  readonly corruptRuns: Pick<CorruptRuns, 'has'>;
}

/** The types of events after which a pause opens, changes or closes. */
const PAUSE_EVENTS: ReadonlySet<string> = new Set<RunFactType>([
  'RunPaused',
  'VoteCast',
  'PauseEscalated',
  'GateDecided',
  'RunFailed',
]);

export class Inbox {
  readonly #deps: InboxDeps;

  constructor(deps: InboxDeps) {
    this.#deps = deps;
  }

  /** The open pauses, longest wait first, with everything recorded before the call. */
  async list(query: InboxQuery, caller: Caller): Promise<readonly WaitingPause[]> {
    const found: WaitingPause[] = [];
    for await (const pause of this.waiting(query, caller)) found.push(pause);
    return found;
  }

  /** The same pauses, read as the caller takes them, so that few are in memory at a time. */
  async *waiting({ since, limit, ...filter }: InboxQuery, caller: Caller): AsyncGenerator<WaitingPause> {
    // A place before all pauses that began at `since`. Of these, the run that started last comes first.
    const first: RunPlace | null = since === null ? null : { value: since, createdAt: '9', id: '' };
    let left = limit;
    for await (const ids of this.#candidates(filter, first, caller)) {
      const pauses = await Promise.all(ids.map((id) => this.#pauseOf(id, { caller })));
      for (const pause of pauses) {
        if (pause === null || !isWanted(pause, filter)) continue;
        yield pause;
        left -= 1;
        if (left === 0) return;
      }
    }
  }

  /** Ids of paused runs, longest wait first, in groups. Filters by rows, so that the inbox reads no other records. */
  async *#candidates(
    { isMine, blueprintId }: InboxFilter,
    first: RunPlace | null,
    caller: Caller,
  ): AsyncGenerator<readonly string[]> {
    for (let after = first; ;) {
      const runs = await this.#paused(blueprintId, after);
      const ids = runs.flatMap((run) => (!isMine || isApprover(run, run.approvers, caller) ? [run.id] : []));
      for (let at = 0; at < ids.length; at += FOLDED_AT_ONCE) yield ids.slice(at, at + FOLDED_AT_ONCE);
      const last = runs.at(-1);
      if (last === undefined || runs.length < ROWS_AT_ONCE) return;
      after = placeOf(last, 'waiting');
    }
  }

  /** Follows the log. Reports each pause that opens or gains a vote completely, and each pause that closes. */
  async follow({ after, onChange, onProgress, signal, ...filter }: InboxFollowOptions, caller: Caller): Promise<void> {
    await this.#deps.logFeed.follow({
      after,
      types: PAUSE_EVENTS,
      blueprintId: filter.blueprintId,
      onProgress,
      signal,
      onEvent: async ({ runId, event, cursor }) => {
        const change = await this.#changeBy(runId, event, (to) => this.#wantedPause(runId, { caller, to, filter }));
        if (change !== null) await onChange(change, cursor);
        else onProgress(cursor);
      },
    });
  }

  #paused(blueprintId: string | null, after: RunPlace | null): Promise<readonly RunSummary[]> {
    const filter = { status: 'paused' as const, withChildren: true, ...(blueprintId !== null && { blueprintId }) };
    const place = after === null ? {} : { after };
    return this.#deps.queries.list({ limit: ROWS_AT_ONCE, offset: 0, filter, sort: 'waiting', ...place });
  }

  /** @param wantedAfter the run's open pause after an event, or null if there is none or the filter excludes it */
  async #changeBy(
    runId: string,
    event: RunEvent,
    wantedAfter: (seq: number) => Promise<WaitingPause | null>,
  ): Promise<InboxChange | null> {
    const opened = async (): Promise<InboxChange | null> => {
      const pause = await wantedAfter(event.seq);
      return pause && { kind: 'waiting', pause };
    };
    const gone = async (outcome: Pick<GonePause, 'outcome' | 'actor'>): Promise<InboxChange | null> => {
      const before = await wantedAfter(event.seq - 1);
      return before && { kind: 'gone', pause: { runId, seq: before.pause.seq, at: event.at, ...outcome } };
    };
    switch (event.type) {
      case 'GateDecided':
        return await gone({ outcome: event.data.action, actor: event.data.actor });
      case 'RunFailed':
        return await gone({ outcome: 'failed', actor: event.data.actor ?? null });
      case 'PauseEscalated':
        return (await opened()) ?? (await gone({ outcome: 'escalated', actor: null }));
      default:
        return await opened();
    }
  }

  async #wantedPause(
    runId: string,
    { filter, ...at }: PauseOptions & { readonly filter: Pick<InboxFilter, 'isMine'> },
  ) {
    const pause = await this.#pauseOf(runId, at);
    return pause !== null && isWanted(pause, filter) ? pause : null;
  }

  /** A run's open pause, after an event or now, or null if there is none or the run is corrupt. */
  async #pauseOf(runId: string, { caller, to }: PauseOptions): Promise<WaitingPause | null> {
    const { corruptRuns, reader } = this.#deps;
    if (corruptRuns.has(runId)) return null;
    try {
      return await reader.folded(runId, (events) => foldedPause(runId, events, caller), to && to + 1);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return null;
    }
  }
}

async function foldedPause(
  runId: string,
  events: AsyncIterable<RunEvent>,
  caller: Caller,
): Promise<WaitingPause | null> {
  let run: RunState | null = null;
  let lastDecision: LastDecision | null = null;
  for await (const event of events) {
    if (isDecisionBy(caller, event)) {
      const draft = run?.progress.shown.draft ?? null;
      lastDecision = { seq: event.seq, at: event.at, action: event.data.action, draft };
    }
    run = foldNext(runId, run, event);
  }
  const pause = run && openPauseOf(run);
  if (run === null || pause === null) return null;
  return { run, pause, approvals: approvalsAt(run, pause), mayDecide: mayDecide(run, caller), lastDecision };
}

/**
 * Whether the caller made a decision. Decisions of deadlines are excluded, because their actor equals that of a caller
 * without a key.
 */
function isDecisionBy(
  { actor }: Caller,
  event: RunEvent,
): event is Extract<RunEvent, { type: 'GateDecided' | 'VoteCast' }> {
  if (event.type === 'VoteCast') return event.data.actor === actor;
  return event.type === 'GateDecided' && event.data.by !== 'deadline' && event.data.actor === actor;
}

interface PauseOptions {
  readonly caller: Caller;
  /** Revision of the last event to fold. Default: the head. */
  readonly to?: number;
}

function isWanted({ mayDecide: isTheirs }: WaitingPause, { isMine }: Pick<InboxFilter, 'isMine'>): boolean {
  return isTheirs || !isMine;
}
