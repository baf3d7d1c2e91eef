import { itemsOf } from '../../src/draft/items.js';
/** Histories for test/golden/: every kind of event, recorded the same each time. */
import { fixedGraph } from '../../src/council/fixed-graph.js';
import type {
  Approvals,
  BudgetChange,
  ChildEndedData,
  GateChoice,
  Graph,
  RunRequestedData,
} from '../../src/generated/schemas.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { childrenUnderWay } from '../../src/run/children/children.js';
import { decide } from '../../src/run/decide.js';
import type { RunCommand } from '../../src/run/decide.js';
import { NO_EFFORT, usageOf } from '../../src/run/effort.js';
import type { Caller } from '../../src/keys/caller.js';
import { ANYONE } from '../../src/keys/caller.js';
import type { RunEvent, RunFact } from '../../src/run/events.js';
import { sealAppend } from '../../src/eventsourcing/aggregate.js';
import { factsAfter, foldNext } from '../../src/run/stream.js';
import type { ForkChanges } from '../../src/run/fork.js';
import { buildForkRequest } from '../../src/run/fork.js';
import { decisionOn, applyDeadline } from '../../src/run/pauses/human-decision.js';
import type { Chart, RunSnapshot } from '../../src/run/chart/machine.js';
import { compileChart } from '../../src/run/chart/machine.js';
import { buildRunRequest, startRun } from '../../src/run/request.js';
import { present } from '../../src/system/element.js';
import type { RunState } from '../../src/run/state.js';
import { openPauseOf } from '../../src/run/state.js';
import type { DecisionContext } from '../../src/run/pending-events.js';
import type { ToolName } from '../../src/models/port.js';
import { openPanels } from '../../src/run/panels/panels.js';
import type { When } from './given.js';
import {
  answered,
  attemptOf,
  broke,
  completed,
  graphOf,
  graphWith,
  memberBroke,
  memberGave,
  scored,
  usedTool,
  wrote,
} from './given.js';
import { manualSystem } from './manual-system.js';
import { plainName } from './open-engine.js';

/** Records a run. A second passes before each append. */
class Recording {
  readonly events: RunEvent[] = [];
  readonly #system: ReturnType<typeof manualSystem>;
  readonly #chart: Chart;
  readonly #runId: string;
  #snapshot: RunSnapshot | null = null;

  constructor(
    requested: RunRequestedData,
    { seed, claim = true }: { readonly seed: number; readonly claim?: boolean },
  ) {
    this.#system = manualSystem(seed);
    this.#chart = compileChart(requested.graph);
    this.#runId = requested.runId;
    this.#record(startRun(this.#chart, requested, { hasSlot: claim, context: this.#context('one') }).facts, 'one');
  }

  when(when: When, instanceId = 'one'): this {
    this.#system.advance(1_000);
    const snapshot = this.#at();
    const command = typeof when === 'function' ? when(snapshot.context.run) : when;
    this.#record(decide(this.#chart, snapshot, { command, context: this.#context(instanceId) }).facts, instanceId);
    return this;
  }

  decided(choice: GateChoice, caller: Caller = ANYONE, budget?: BudgetChange): this {
    this.#system.advance(60_000);
    const snapshot = this.#at();
    const pause = present(openPauseOf(snapshot.context.run), 'the open pause');
    const request = {
      choice,
      budget,
      caller,
      comment: null,
      keyHash: null,
      bodyHash: this.#system.sha256(canonical(choice)),
      expectedSeq: null,
    };
    const replay = { chart: this.#chart, snapshot };
    this.#record(decisionOn(replay, pause, { request, context: this.#context('one') }).pending.facts, 'one');
    return this;
  }

  /** Advances the time to the deadline of the open pause. */
  due(ms: number): this {
    this.#system.advance(ms);
    this.#record(applyDeadline(this.#chart, this.#at(), this.#context('one')).facts, 'one');
    return this;
  }

  /** Lets time pass. */
  passed(ms: number): this {
    this.#system.advance(ms);
    return this;
  }

  /** The run after its n-th event of a type, from 1. */
  after(type: RunEvent['type'], count: number): RunState {
    const seq = this.events.filter((event) => event.type === type)[count - 1]?.seq ?? -1;
    let run: RunState | null = null;
    for (const event of this.events.slice(0, seq + 1)) run = foldNext(this.#runId, run, event);
    if (run === null) throw new Error(`There is no ${type} ${count}`);
    return run;
  }

  #at(): RunSnapshot {
    if (this.#snapshot === null) throw new Error('Nothing is recorded yet');
    return this.#snapshot;
  }

  #record(facts: readonly RunFact[], instanceId: string): void {
    const head = this.#snapshot?.context.run.head ?? null;
    const after = factsAfter(head, this.#runId, facts);
    const { recorded } = sealAppend({ system: this.#system, instanceId }, after);
    for (const event of recorded) {
      this.#snapshot = this.#snapshot === null ? this.#chart.first(event) : this.#chart.next(this.#snapshot, event);
      this.events.push(event);
    }
  }

  #context(instanceId: string): DecisionContext {
    const { sha256, uuidOf: childId } = this.#system;
    const isToolAvailable = (tool: ToolName): boolean => tool === 'pdfReader';
    const context = {
      instanceId,
      fullName: plainName,
      isToolAvailable,
      pricesHash: sha256('prices'),
      priceOf: () => null,
      sha256,
      childId,
      itemsOf,
    };
    return { at: this.#system.now(), ...context };
  }
}

const FIXED = fixedGraph({ timeoutMs: 120_000, maxAttempts: 4 });
const COUNCIL = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish');
const BRANCHES = graphOf(`plan -> left, right; left -> check?; check -> meet; right -> meet;
  meet -> judge?; judge -rework-> plan; judge -approve-> polish`);
const ONE_WAY = graphOf('write -> judge?; judge -approve-> polish');
const READER = graphOf('read -> polish', { tools: { webSearch: true, pdfReader: true } });
const UNEVEN = graphOf('plan -> left, right, aside; right -> deep; left, deep -> meet');
const APPROVE: GateChoice = { action: 'approve', modifiedState: null };

/** Every history by its name. */
export function goldenHistories(): ReadonlyMap<string, readonly RunEvent[]> {
  const branches = branchesRun(5);
  const modified = modifiedRun(8);
  const deliberation = deliberationRun(21);
  const councils = councilsRun(24);
  const histories: Record<string, Recording> = {
    'fixed-graph': fixedRun(1),
    blueprint: recording(2, COUNCIL).when(wrote('write', 'Bäume 🌳')).when(scored('judge', 9.5)).when(wrote('polish')),
    'failure-after-retries': recording(3, COUNCIL)
      .when(broke('write', 250))
      .when(broke('write', 500))
      .when(broke('write')),
    'failure-without-route': recording(4, ONE_WAY).when(wrote('write')).when(scored('judge', 3)),
    branches,
    cancel: recording(6, BRANCHES).when(wrote('plan')).when(wrote('right')).when({ type: 'CancelRun', actor: null }),
    'god-approve': recording(7, ONE_WAY, true)
      .decided(APPROVE)
      .when(wrote('write'))
      .decided(APPROVE)
      .when(scored('judge', 8))
      .decided({ action: 'approve', modifiedState: { current_draft: 'sent, not applied' } })
      .when(wrote('polish')),
    'god-modify': modified,
    'god-modify-branches': branchesModified(16),
    'god-last-say': lastSay(17),
    'god-quorum': quorumRun(18),
    'god-deadline': deadlineRun(19),
    'god-reject': recording(9, COUNCIL, true)
      .decided(APPROVE)
      .when(wrote('write'))
      .decided({ action: 'reject', modifiedState: null }),
    'tool-calls': toolRun(10),
    takeover: takenRun(11),
    budget: budgetRun(20),
    deliberation,
    'names-of-models': namesRun(23),
    councils,
    'fork-of-a-council': forked(25, councils.after('ChildEnded', 1), {})
      .when({ type: 'StartChildren', step: 2 })
      .when(childEnded(1, { status: 'completed', output: 'Text of two' })),
    'fork-of-a-panel': forked(22, deliberation.after('QuorumReached', 1), {})
      .when(answered('three'))
      .when({ type: 'CancelRun', actor: null }),
    'fork-of-branches': forked(12, branches.after('NodeCompleted', 2), { override: { feedback_history: ['Be brief'] } })
      .when(wrote('left'))
      .when(scored('check', 7))
      .when(wrote('meet'))
      .when(scored('judge', 8))
      .when(wrote('polish')),
    'fork-at-a-pause': forked(13, modified.after('RunPaused', 2), {
      inputTopic: 'Shrubs',
      override: { current_draft: 'Another draft' },
      nodes: [{ id: 'judge', systemPrompt: 'Be strict.' }],
    })
      .decided(APPROVE)
      .when(scored('judge', 9))
      .decided(APPROVE)
      .when(wrote('polish')),
  };
  return new Map(Object.entries(histories).map(([name, { events }]) => [name, events]));
}

function recording(seed: number, graph: Graph, godMode = false): Recording {
  return new Recording(requested(seed, graph, godMode), { seed });
}

function requested(seed: number, graph: Graph, godMode: boolean): RunRequestedData {
  const { uuid, sha256 } = manualSystem(1_000 + seed);
  return buildRunRequest({
    runId: uuid(),
    inputTopic: 'Trees',
    godMode,
    blueprint: graph === FIXED ? null : { id: 'blueprint', name: 'Blueprint' },
    graph,
    graphHash: sha256(canonical(graph)),
    keyHash: null,
    bodyHash: sha256('Trees'),
    actor: null,
  });
}

function forked(seed: number, parent: RunState, changes: Partial<ForkChanges>): Recording {
  const { uuid, sha256 } = manualSystem(1_000 + seed);
  const all = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null, ...changes };
  return new Recording(
    buildForkRequest(parent, all, {
      runId: uuid(),
      bodyHash: sha256('fork'),
      actor: null,
      fullName: plainName,
      sha256,
    }),
    {
      seed,
    },
  );
}

function fixedRun(seed: number): Recording {
  return recording(seed, FIXED)
    .when(wrote('master_agent', 'First draft'))
    .when(scored('critic_agent', 6.5, 'More depth'))
    .when(wrote('master_agent', 'Second draft'))
    .when(scored('critic_agent', 8))
    .when(wrote('writer_agent', 'Final text'));
}

/** A council with a run for each line, of which one fails, and one without items. */
function councilsRun(seed: number): Recording {
  const { edges } = graphOf('plan -> parts; parts -> whole');
  const council = { id: 'part', name: 'Part', version: 3, graph: graphOf('write') };
  const graph = graphWith(
    [
      { id: 'plan' },
      { id: 'parts', role: 'council', council, forEach: 'lines', maxParallel: 1, onError: 'skip' },
      { id: 'whole', role: 'council', council, topic: '{{topic}}: {{draft}}', onError: 'fail' },
    ],
    edges,
  );
  return recording(seed, graph)
    .when(wrote('plan', '- One\n- Two'))
    .when({ type: 'StartChildren', step: 2 })
    .when(childEnded(0, { status: 'completed', output: 'Text of one' }))
    .when({ type: 'ClaimRun', reason: 'recovered' }, 'two')
    .when(childEnded(1, { status: 'failed', output: null, error: 'no answer' }))
    .when({ type: 'StartChildren', step: 3 })
    .when(childEnded(0, { status: 'completed', output: 'The whole' }));
}

/** The end of a run that a council has started. */
function childEnded(index: number, end: Pick<ChildEndedData, 'status' | 'output' | 'error'>) {
  return (run: RunState): RunCommand => {
    const [under] = childrenUnderWay(run).filter(({ child }) => child.index === index);
    if (under === undefined) throw new Error(`No run ${index} is under way`);
    const { at, child } = under;
    const usage = usageOf(NO_EFFORT);
    const place = { step: at.step, node: at.node, index, child: child.runId };
    return {
      type: 'EndChild',
      failure: null,
      end: { ...place, ...end, usage, costUsd: usage.costUsd, headHash: 'a'.repeat(64) },
    };
  };
}

/** A run that pauses for its budget, with a critic that is asked twice. */
function budgetRun(seed: number): Recording {
  const graph = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish', { maxOutputTokens: 100 });
  const budget = { tokens: 500, usd: null, onExceeded: 'pause' as const };
  return new Recording({ ...requested(seed, graph, false), budget }, { seed })
    .when(wrote('write'))
    .when(asksAgain('judge'))
    .when(scored('judge', 3))
    .when(broke('write', 0))
    .decided(APPROVE, ANYONE, { tokens: 3_000 })
    .when(wrote('write'))
    .when(scored('judge', 9))
    .when(wrote('polish'));
}

/** A panel with a failed, a repeated and a late member, a rank, a judge, a writer, and a jury that asks for rework once. */
function deliberationRun(seed: number): Recording {
  const members = ['one', 'two', 'three', 'four'].map((id) => ({ id, label: id.toUpperCase(), model: `${id}-model` }));
  const waits = { quorum: 2, graceMs: 5_000 };
  const lines = [
    'panel -> rank',
    'rank -> judge',
    'judge -> write',
    'write -> jury',
    'jury -rework-> write',
    'jury -approve-> end',
  ];
  const { edges } = graphOf(lines.join('\n'));
  const graph = graphWith(
    [
      { id: 'panel', role: 'panel', countsIteration: true, members, ...waits },
      { id: 'rank', role: 'rank', countsIteration: false, keep: 2 },
      { id: 'judge', role: 'judge', countsIteration: false },
      { id: 'write' },
      { id: 'jury', role: 'critic', members: members.slice(0, 3), aggregate: 'mean', ...waits },
      { id: 'end' },
    ],
    edges,
  );
  const analysis = {
    consensus: ['Both name oaks'],
    contradictions: [],
    partial_coverage: [],
    blind_spots: [],
    unique_insights: [{ response: 'B', insight: 'Only Response B counts rings' }],
  };
  const run = recording(seed, graph)
    .when(answered('one', 'One-model says: oaks'))
    .when(memberBroke('two', 250))
    .when(memberBroke('two'))
    .when({ type: 'ClaimRun', reason: 'recovered' }, 'two')
    .when(answered('three'))
    .passed(5_000)
    .when((state) => ({ type: 'ClosePanels', until: openPanels(state)[0]?.until ?? '' }));
  for (const member of ['one', 'three', 'four']) run.when(memberGave(member, { ranking: ['B', 'A'], comment: 'B' }));
  run.when(memberBroke('two'));
  run.when((state) => completed(attemptOf(state, 'judge'), { analysis })).when(wrote('write'));
  for (const scores of [
    [3, 5],
    [9, 8],
  ]) {
    scores.forEach((score, index) => run.when(memberGave(index === 0 ? 'one' : 'two', { score, feedback: 'More' })));
    run.when(memberGave('three', { score: 7, feedback: '' }));
    run.when(wrote(scores[0] === 3 ? 'write' : 'end'));
  }
  return run;
}

/** A panel whose answers, analysis and feedback hold names of models, read by every kind of node and after a join. */
function namesRun(seed: number): Recording {
  const members = ['openai/gpt-5', 'ollama/solar', 'openrouter/anthropic/claude-sonnet-4'].map((model, index) => {
    return { id: `m${index + 1}`, label: `Member ${index + 1}`, model, fallbacks: ['groq/llama-3'] };
  });
  const { edges } = graphOf('plan -> panel, side; panel -> score; score -> judge; judge -> rank; rank, side -> meet');
  const graph = graphWith(
    [
      { id: 'plan' },
      { id: 'side' },
      { id: 'panel', role: 'panel', countsIteration: true, members, graceMs: 0 },
      { id: 'score', role: 'critic', countsIteration: false },
      { id: 'judge', role: 'judge', countsIteration: false },
      { id: 'rank', role: 'rank', countsIteration: false, keep: 2 },
      { id: 'meet' },
    ],
    edges,
  );
  const analysis = {
    consensus: ['All praise solar power, as Groq does'],
    contradictions: [],
    partial_coverage: [],
    unique_insights: [{ response: 'B', insight: 'Only Response B quotes Claude' }],
    blind_spots: ['Llamas, and llama-3'],
  };
  const run = recording(seed, graph)
    .when(wrote('plan'))
    .when(wrote('side', 'OpenAI and solar, by another'))
    .when(answered('m1', 'As GPT-5, I say: OpenAI charges 10 dollars, Anthropic 15'))
    .when(answered('m2', '## Member 2\nSolar power is cheap. I am solar.'))
    .when(answered('m3', 'I am Claude, and known as Member 3'))
    .when(scored('score', 4, 'Response A forgets Ollama; Claude Sonnet 4 is right'))
    .when((state) => completed(attemptOf(state, 'judge'), { analysis }));
  for (const { id } of members) run.when(memberGave(id, { ranking: ['B', 'A'], comment: 'As GPT' }));
  return run.when(wrote('meet'));
}

function asksAgain(node: string): When {
  return (run) => {
    const { step, attempt } = attemptOf(run, node);
    const usage = { inputTokens: 20, cachedInputTokens: 8, outputTokens: 5 };
    const call = { usage, costUsd: null };
    return {
      type: 'ReserveCall',
      next: { step, attempt, texts: ['Score it again.'], tools: 0, last: call, total: call },
    };
  };
}

/** Two branches of different length, joined, sent back once as a whole. */
function branchesRun(seed: number): Recording {
  const run = recording(seed, BRANCHES);
  for (const score of [4, 9]) {
    run.when(wrote('plan')).when(wrote('right')).when(broke('left', 100)).when(wrote('left'));
    run.when(scored('check', score)).when(wrote('meet')).when(scored('judge', score));
  }
  return run.when(wrote('polish'));
}

/** A human changes a draft, then a score, which routes the last node again. */
function modifiedRun(seed: number): Recording {
  return recording(seed, COUNCIL, true)
    .decided({ action: 'modify', modifiedState: null })
    .when(wrote('write'))
    .decided({ action: 'modify', modifiedState: { current_draft: 'A human draft', input_topic: 'Old trees' } })
    .when(scored('judge', 3))
    .decided({
      action: 'modify',
      modifiedState: { critic_score: 8, feedback_history: ['Good enough'], iteration_count: 4 },
    })
    .when(wrote('polish'));
}

/**
 * A human changes drafts of single branches, of all branches about to run, and of the next branch only, and sends the
 * rest as shown.
 */
function branchesModified(seed: number): Recording {
  return recording(seed, UNEVEN, true)
    .decided(APPROVE)
    .when(wrote('plan'))
    .decided({
      action: 'modify',
      modifiedState: {
        input_topic: 'Trees',
        current_draft: 'A plan for the others',
        critic_score: null,
        branches: [{ node: 'left', current_draft: 'A plan for left' }],
      },
    })
    .when(wrote('left'))
    .when(wrote('right'))
    .when(wrote('aside'))
    .decided({
      action: 'modify',
      modifiedState: {
        current_draft: 'Edited',
        critic_score: 6,
        feedback_history: ['Be brief'],
        branches: [{ node: 'meet', current_draft: 'by left' }],
      },
    })
    .when(wrote('deep'))
    .decided({ action: 'modify', modifiedState: { current_draft: 'Joined by hand' } })
    .when(wrote('meet'));
}

const named = (actor: string): Caller => ({ actor, scopes: new Set(['approve']) });

/** Two approvers must agree, and one of them changes the vote; later one is enough to reject. */
function quorumRun(seed: number): Recording {
  const mine: GateChoice = { action: 'modify', modifiedState: { current_draft: 'Mine' } };
  return recording(
    seed,
    { ...COUNCIL, approvals: { by: ['ann', 'scope:approve'], not_by_starter: true, quorum: 2 } },
    true,
  )
    .decided(APPROVE, named('ann'))
    .decided(mine, named('ben'))
    .decided(mine, named('ann'))
    .when(wrote('write'))
    .decided(APPROVE, named('ann'))
    .decided({ action: 'reject', modifiedState: null }, named('eve'));
}

/** No decision comes in time: one pause continues, the next escalates. */
function deadlineRun(seed: number): Recording {
  const graph = graphOf('write -> polish');
  const [approve, escalate]: readonly Approvals[] = [
    { deadline: { after_ms: 60_000, then: 'approve' } },
    { by: ['ann'], deadline: { after_ms: 90_000, then: { escalate: ['eve'] } } },
  ];
  const said = new Map([
    ['write', approve],
    ['polish', escalate],
  ]);
  const nodes = graph.nodes.map((node) => ({ ...node, approvals: said.get(node.id) ?? {} }));
  return recording(seed, { ...graph, nodes }, true)
    .due(60_000)
    .when(wrote('write'))
    .due(90_000)
    .decided(APPROVE, named('eve'))
    .when(wrote('polish'));
}

/** A critic that never approves: a human corrects its fifth score without effect, then asks for rework. */
function lastSay(seed: number): Recording {
  const run = recording(seed, COUNCIL, true);
  const round = (score: number) =>
    run.decided(APPROVE).when(wrote('write')).decided(APPROVE).when(scored('judge', score));
  for (let count = 1; count <= 5; count += 1) round(4);
  run.decided({ action: 'modify', modifiedState: { critic_score: 2, route_decision: 'rework' } });
  run.when(wrote('write')).decided(APPROVE).when(scored('judge', 5));
  return run.decided({ action: 'modify', modifiedState: { critic_score: 3 } }).when(wrote('polish'));
}

function toolRun(seed: number): Recording {
  const document = 'd'.repeat(64);
  const hits = [1, 2].map((page) => ({ document, page, chunk: page, score: 0.5 }));
  return recording(seed, READER)
    .when(usedTool('read', hits))
    .when(broke('read', 100))
    .when(usedTool('read', [{ url: 'http://127.0.0.1/trees', title: 'Trees', score: null }]))
    .when(wrote('read', 'Oaks [dddddddd:2], elms [dddddddd:7]'))
    .when(wrote('polish', 'Oaks [dddddddd:2], elms [dddddddd:7]'));
}

/** A run that waits for a slot, loses its owner and is handed over. */
function takenRun(seed: number): Recording {
  return new Recording(requested(seed, BRANCHES, false), { seed, claim: false })
    .when({ type: 'ClaimRun', reason: 'started' })
    .when(wrote('plan'))
    .when(wrote('right'))
    .when({ type: 'ClaimRun', reason: 'recovered' }, 'two')
    .when({ type: 'ReleaseRun' }, 'two')
    .when({ type: 'ClaimRun', reason: 'handover' })
    .when(wrote('left'))
    .when(scored('check', 8))
    .when(wrote('meet'))
    .when(scored('judge', 8))
    .when(wrote('polish'));
}
