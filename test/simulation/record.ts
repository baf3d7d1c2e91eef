/**
 * Checks a run's record at each event when it is recorded. The rules are implemented here a second time, independently
 * of `src/run` and from the recorded data alone. Only the hash chain and the chart are those of the service.
 */
import type {
  ChildEndedData,
  ChildStartedData,
  NodeCompletedData,
  NodeFailedData,
  NodeOutput,
  NodeStartedData,
  RunClaimedData,
  RunFailedData,
  RunRequestedData,
  ToolCalledData,
} from '../../src/generated/schemas.js';
import type { RecordedEvent } from '../../src/eventlog/port.js';
import { chartCache } from '../../src/run/chart/machine.js';
import { RunReplayer } from '../../src/run/replay.js';
import type { RunState } from '../../src/run/state.js';
import { finalDraftOf } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import type { RunEvent } from '../../src/run/events.js';
import { Budgets } from './budgets.js';
import { Panels } from './panels.js';
import { Pauses } from './pauses.js';
import { runEventOf } from '../../src/run/stream.js';

/** An invariant does not hold. */
export class InvariantBroken extends Error {
  readonly invariant: string;
  constructor(invariant: string, detail: string) {
    super(`${invariant}: ${detail}`);
    this.invariant = invariant;
  }
}

/** Knowledge of the history that is not in the record. */
export interface HistoryKnowledge {
  /** Marks an answer as recorded. Returns false if no model gave it to this attempt, or it was recorded before. */
  takeAnswer(mark: string, attempt: string): boolean;
  /** The events of a fork's parent up to the fork. */
  parentEvents(parent: { readonly runId: string; readonly at: number }): readonly RunEvent[];
  /** Whether a fault or request explains this failure of a run. */
  explains(failure: RunFailedData): boolean;
  /** Whether a tool returned this hit for a query. */
  hasFound(query: string, place: number): boolean;
  /** The last event of a run, and the runs that it has started for its councils, or null if there is no such run. */
  recordOf(runId: string): RunRecord | null;
  /** Whether other instances may suspect an instance. */
  mayBeDead(instanceId: string): boolean;
}

/** Events that only the owner may append. */
const OWNERS_ALONE: ReadonlySet<string> = new Set([
  'RunStarted',
  'RunResumed',
  'NodeStarted',
  'CallReserved',
  'ToolCalled',
  'ChildStarted',
  'NodeCompleted',
  'NodeFailed',
  'QuorumReached',
  'PanelClosed',
  'RunPaused',
]);

/** Events that an instance may append together to end a run of another one. */
const ENDS: ReadonlySet<string> = new Set(['ChildEnded', 'RunFailed']);

/** Most tool calls of one attempt. */
const MAX_CALLS_PER_ATTEMPT = 8;

const { sha256 } = nodeSystem();
const charts = chartCache();

export class RunRecord {
  readonly runId: string;
  /** The run after each event. */
  readonly states: RunState[] = [];
  readonly events: RunEvent[] = [];
  /** By step, the instance that recorded its result, or that no result follows, and the revision. */
  readonly results = new Map<number, { readonly by: string; readonly seq: number }>();
  readonly attempts = new Set<string>();
  /** By query, the attempt that made the tool call. */
  readonly toolResults = new Map<string, string>();
  readonly #witness: HistoryKnowledge;
  readonly #replayer: RunReplayer;
  /** By step, the attempt that started last, unless it has failed. */
  readonly #underWay = new Map<number, number>();
  readonly #failures = new Map<number, number>();
  readonly #pauses = new Pauses((holds, detail) => this.#must(holds, 'one winner per pause', detail));
  readonly #budgets = new Budgets((holds, detail) => this.#must(holds, 'no call above the budget', detail));
  readonly #panels: Panels;
  /** By attempt, the calls that were reserved after its first. */
  readonly #furtherCalls = new Map<string, number>();
  /** By step and index, the runs that councils have started, and whether each has ended here. */
  readonly children = new Map<string, { readonly runId: string; status: ChildEndedData['status'] | null }>();
  /** Calls of the run itself, and of the runs of its councils. */
  #calls = 0;
  #owner: string | null = null;
  #epoch = 0;
  #takeovers = 0;
  #takeoversAtClaim = 0;
  /** Who ends the run of another instance, or null. */
  #endsAs: string | null = null;
  #steps = 0;
  #executions = 0;

  constructor(runId: string, witness: HistoryKnowledge) {
    this.runId = runId;
    this.#witness = witness;
    this.#replayer = new RunReplayer(runId, { charts, sha256 });
    this.#panels = new Panels(runId, {
      sha256,
      must: (...given) => this.#must(...given),
      parentEvents: (parent) => witness.parentEvents(parent),
    });
  }

  get state(): RunState | null {
    return this.states.at(-1) ?? null;
  }

  /** How many calls of tools are recorded in an attempt. */
  toolCallsOf(attempt: string): number {
    let calls = 0;
    for (const each of this.toolResults.values()) if (each === attempt) calls += 1;
    return calls;
  }

  /** How many calls of an attempt were reserved after its first. */
  furtherCallsOf(attempt: string): number {
    return this.#furtherCalls.get(attempt) ?? 0;
  }

  /** Whether the council of the run has panels, ranks or juries. */
  get hasPanels(): boolean {
    return this.#panels.areThere;
  }

  /** Whether the open pause ends by itself. */
  get hasDeadline(): boolean {
    return this.#pauses.hasDeadline;
  }

  get hasEnded(): boolean {
    const type = this.events.at(-1)?.type;
    return type === 'RunCompleted' || type === 'RunFailed';
  }

  /** @throws {InvariantBroken} */
  take(recorded: RecordedEvent): void {
    this.#must(!this.hasEnded, 'one terminal event', `${recorded.type} follows the end`);
    const event = runEventOf(recorded);
    this.#replay(event);
    this.#ownership(event, recorded.metadata['instanceId'] ?? '');
    const [before = null, after] = [this.states.at(-2), this.state];
    if (after !== null) this.#budgets.take(event, { before, after });
    // Until the log has acknowledged it, also the owner may repeat a call that a close has discarded.
    for (const step of this.#panels.take(event)) this.#endStep(step, '');
    this.#rules(event, recorded.metadata['instanceId'] ?? '');
    this.events.push(event);
  }

  #replay(event: RunEvent): void {
    try {
      this.#replayer.apply(event);
    } catch (error) {
      throw new InvariantBroken('legal prefix', `run ${this.runId} at ${event.seq}: ${String(error)}`);
    }
    const run = this.#replayer.replay?.snapshot.context.run;
    if (run !== undefined) this.states.push(run);
  }

  #ownership(event: RunEvent, writer: string): void {
    const { type, data } = event;
    if (type === 'RunRequested' && data.state !== null) {
      this.#steps = data.state.steps;
      this.#executions = data.state.executions ?? data.state.steps;
    }
    if (type === 'RunClaimed') this.#claimed({ ...data, writer });
    if (OWNERS_ALONE.has(type))
      this.#must(writer === this.#owner, 'one owner', `${type} by ${writer}, owned by ${this.#owner}`);
    this.#endedByOther(type, writer);
    if (type === 'RunReleased' || type === 'RunFailed' || type === 'RunCompleted') this.#owner = null;
  }

  /** Any instance may end the run, with the runs of its councils. */
  #endedByOther(type: string, writer: string): void {
    if (this.#endsAs !== null)
      this.#must(writer === this.#endsAs && ENDS.has(type), 'one owner', `${type} by ${writer} after an end`);
    if (type === 'ChildEnded' && writer !== this.#owner) this.#endsAs = writer;
    if (type === 'RunFailed') this.#endsAs = null;
  }

  #claimed({ epoch, instanceId, reason, writer }: RunClaimedData & { readonly writer: string }): void {
    this.#epoch += 1;
    this.#must(epoch === this.#epoch && instanceId === writer, 'one owner', `claim ${epoch} by ${writer}`);
    const isTakeover = reason === 'recovered';
    const isFree = this.#owner === null || this.#owner === writer;
    this.#must(isFree || isTakeover, 'one owner', `${reason} from ${this.#owner}`);
    this.#must(
      isFree || this.#witness.mayBeDead(this.#owner ?? ''),
      'no takeover from a live owner',
      `of ${this.#owner}`,
    );
    this.#owner = writer;
    this.#takeovers += isTakeover ? 1 : 0;
    this.#takeoversAtClaim = this.#takeovers;
  }

  #rules(event: RunEvent, writer: string): void {
    const { type, data } = event;
    switch (type) {
      case 'RunRequested':
      case 'ChildStarted':
      case 'ChildEnded':
        return this.#ofChildren(event);
      case 'NodeStarted':
        return this.#started(data);
      case 'CallReserved': {
        const attempt = `${data.step}.${data.attempt}`;
        this.#furtherCalls.set(attempt, this.furtherCallsOf(attempt) + 1);
        return;
      }
      case 'ToolCalled':
        return this.#toolCalled(data);
      case 'NodeCompleted': {
        const attempt = `${data.step}.${data.attempt}`;
        this.#must(this.attempts.has(attempt), 'no step completed twice', `attempt ${attempt} was not started`);
        if (this.#isCouncil(data.node)) this.#mustJoin(data);
        else {
          const mark = markOf(data.output);
          const isOwn = this.#witness.takeAnswer(mark, attempt);
          this.#must(isOwn, "a result is a model's own, once", `${mark} in ${attempt}`);
        }
        this.#endStep(data.step, writer);
        this.#takeovers = 0;
        return;
      }
      case 'RunCompleted':
        this.#mustOutliveChildren();
        return this.#mustCount(data.usage?.calls);
      case 'PanelClosed':
        this.#takeovers = 0;
        return;
      case 'NodeFailed':
        return this.#failed(data);
      case 'RunFailed':
        this.#mustOutliveChildren();
        this.#mustCount(data.usage?.calls);
        this.#must(this.#witness.explains(data), 'no failure without a cause', `${data.kind}: ${data.error}`);
        if (data.kind === 'takeover_limit')
          this.#must(this.#takeoversAtClaim > 5, 'within the budget', `ended after ${this.#takeovers} takeovers`);
        if (data.kind === 'rejected')
          this.#must(this.events.at(-1)?.type === 'GateDecided', 'no failure without a cause', 'rejected by nobody');
        return;
      default:
        this.#pauses.take(event, this.states.at(-2) ?? this.state);
    }
  }

  #isCouncil(node: string): boolean {
    return this.state?.plan.node(node).role === 'council';
  }

  #failed({ step, kind, outageMs, fallbackTo }: NodeFailedData): void {
    const counts = outageMs === undefined && kind !== 'budget_exceeded';
    const failures = (this.#failures.get(step) ?? 0) + (counts ? 1 : 0);
    // Another model has attempts of its own.
    this.#failures.set(step, fallbackTo === undefined ? failures : 0);
    this.#underWay.delete(step);
    this.#must(failures <= 3, 'within the budget', `failure ${failures} of step ${step}`);
  }

  #ofChildren({ type, data }: Extract<RunEvent, { type: 'RunRequested' | 'ChildStarted' | 'ChildEnded' }>): void {
    if (type === 'RunRequested') this.#requestedBy(data);
    else if (type === 'ChildStarted') this.#childStarted(data);
    else this.#childEnded(data);
  }

  /** A run that a council has started begins after its parent has recorded that. */
  #requestedBy({ parentRun }: RunRequestedData): void {
    if (parentRun === undefined) return;
    const { runId, step, index } = parentRun;
    const started = this.#witness.recordOf(runId)?.children.get(`${step}/${index}`);
    this.#must(started?.runId === this.runId, 'append before act', `${runId} has not recorded ${step}/${index}`);
  }

  #childStarted({ step, index, child, node }: ChildStartedData): void {
    const place = `${step}/${index}`;
    this.#must(!this.children.has(place), 'no run of a council started twice', place);
    this.children.set(place, { runId: child, status: null });
    const underWay = [...this.children].filter(([at, each]) => at.startsWith(`${step}/`) && each.status === null);
    const most = this.state?.plan.node(node).maxParallel ?? 1;
    this.#must(underWay.length <= most, 'within the budget', `${underWay.length} runs of ${node} at a time`);
  }

  #childEnded({ step, index, child, status, headHash, usage }: ChildEndedData): void {
    const started = this.children.get(`${step}/${index}`);
    this.#must(started?.status === null, 'no run of a council ended twice', `${step}/${index}`);
    if (started !== undefined) started.status = status;
    const record = this.#witness.recordOf(child);
    const isEnd = record?.hasEnded === true && record.events.at(-1)?.hash === headHash;
    this.#must(isEnd && record.state?.phase.status === status, 'a run of a council ends before it counts', child);
    this.#calls += usage.calls;
    this.#takeovers = 0;
  }

  /** No run is left without its parent, whose sums count all its calls. */
  #mustOutliveChildren(): void {
    const left = [...this.children.values()].filter(({ status }) => status === null);
    this.#must(
      left.length === 0,
      'a run ends after the runs of its councils',
      left.map(({ runId }) => runId).join(' '),
    );
  }

  /** The draft of a council holds the results of its runs. */
  #mustJoin({ step, output }: NodeCompletedData): void {
    const draft = 'draft' in output ? output.draft : '';
    for (const [place, { runId, status }] of this.children) {
      if (!place.startsWith(`${step}/`)) continue;
      this.#must(status !== null, 'a run of a council ends before it counts', place);
      const record = this.#witness.recordOf(runId);
      const result = record === null || record.state === null ? null : finalDraftOf(record.state);
      const isHeld = status === 'failed' || result === null || draft.includes(result);
      this.#must(isHeld, 'a council holds the results of its runs', `${place} is not in "${draft}"`);
    }
  }

  /** Each call counts once, whichever run made it. */
  #mustCount(calls: number | undefined): void {
    const own = this.events.filter(({ type }) => type === 'CallReserved').length;
    const rounds = this.hasTools ? null : this.#calls + own;
    this.#must(rounds === null || calls === undefined || calls >= rounds, 'each call counts', `${calls} of ${rounds}`);
  }

  /** Whether its nodes may use tools, whose rounds are calls too. */
  get hasTools(): boolean {
    return this.state?.plan.graph.nodes.some(({ tools }) => tools.webSearch) === true;
  }

  #started({ step, attempt: number, panelStep = step, model }: NodeStartedData): void {
    if (model !== '') this.#calls += 1;
    const attempt = `${step}.${number}`;
    this.#must(!this.attempts.has(attempt), 'no attempt started twice', attempt);
    this.attempts.add(attempt);
    this.#underWay.set(step, number);
    this.#must(!this.results.has(step), 'no step completed twice', `step ${step} is started after its result`);
    // The members of a node together are one execution of it.
    this.#executions += step > this.#steps && panelStep === step ? 1 : 0;
    this.#steps = Math.max(this.#steps, step);
    const most = this.states[0]?.request.limits.maxNodeExecutions ?? 0;
    this.#must(this.#executions <= most, 'within the budget', `execution ${this.#executions} of ${most}`);
  }

  /** A step has a result, or none will follow. */
  #endStep(step: number, by: string): void {
    this.#must(!this.results.has(step), 'no step completed twice', `step ${step}`);
    this.results.set(step, { by, seq: this.events.length });
  }

  #toolCalled({ step, attempt, arguments: given, hits, error }: ToolCalledData): void {
    const asked = typeof given === 'string' ? given : String(given['query']);
    const isUnderWay = this.#underWay.get(step) === attempt && !this.results.has(step);
    this.#must(isUnderWay, 'no tool called for what is not under way', `${asked} in ${step}.${attempt}`);
    this.#must(!this.toolResults.has(asked), 'no result of a tool recorded twice', asked);
    this.toolResults.set(asked, `${step}.${attempt}`);
    this.#must(
      this.toolCallsOf(`${step}.${attempt}`) <= MAX_CALLS_PER_ATTEMPT,
      'within the budget',
      `calls in step ${step}`,
    );
    const [hit] = hits;
    if (hit === undefined) return this.#must(error !== null, "a result is a tool's own", `nothing for ${asked}`);
    const place = 'url' in hit ? Number(hit.url.split('/').at(-1)) : hit.chunk;
    this.#must(this.#witness.hasFound(asked, place), "a result is a tool's own", `${place} for ${asked}`);
  }

  #must(holds: boolean, invariant: string, detail: string): void {
    if (!holds) throw new InvariantBroken(invariant, `run ${this.runId}, event ${this.events.length}: ${detail}`);
  }
}

/** The text in an output by which it is found among the answers of models. */
function markOf(output: NodeOutput): string {
  if ('draft' in output) return output.draft;
  if ('answer' in output) return output.answer;
  if ('feedback' in output) return output.feedback;
  return 'comment' in output ? output.comment : (output.analysis.consensus[0] ?? '');
}
