/** The start of a node's attempt, with its prompt and tools. */
import { textsSent } from '../../council/attempt-calls.js';
import type { RenderedPrompt } from '../../council/prompt.js';
import { renderPrompt } from '../../council/prompt.js';
import { userMessage } from '../../models/material.js';
import { grantedTools, renderedTools, toolsAsRecorded } from '../../council/tools/tool.js';
import type { PromptInput } from '../../models/port.js';
import type { GraphNode, NodeStartedData, Reservation } from '../../generated/schemas.js';
import { reservationOf } from '../budget/spending.js';
import type { StepPlace } from '../panels/panels.js';
import { branchInto } from './frontier.js';
import { emptySeat, hasMembers, membersOf, stepNode } from '../panels/panels.js';
import { feedbackShownTo, orderShownTo, shownTo } from '../panels/answers-shown.js';
import type { Assignment, DecisionContext, PendingEvents } from '../pending-events.js';
import { callOf } from '../pending-events.js';
import type { FrontierNode, RunState } from '../state.js';
import { memberOf } from '../state.js';

/** Records the start of a step's next attempt. */
export function startNextAttempt(pending: PendingEvents, at: FrontierNode, delayMs: number): void {
  startNode(pending, { ...at, attempt: at.attempt + 1 }, delayMs);
}

/** Makes equal prompts share one text: each call keeps its prompt until it is answered, and members of a panel get the same. */
function withSharedTexts({ assignments }: PendingEvents, { promptInput, rendered }: Assignment): Assignment {
  const isSame = (each: Assignment): boolean =>
    each.rendered.prompt === rendered.prompt && each.rendered.system === rendered.system;
  const same = [...assignments.values()].find(isSame);
  return { promptInput, rendered: same?.rendered ?? rendered };
}

/** What determines an attempt that is to start. */
export type AttemptStart = Pick<FrontierNode, 'node' | 'step' | 'attempt' | 'model' | 'branch' | 'seat'>;

/** What an attempt sends if it starts now. */
export interface AttemptCall {
  /** With the settings of the member. */
  readonly graphNode: GraphNode;
  /** As the start records them. */
  readonly tools: string[];
  readonly shown: ReturnType<typeof shownAt>;
  readonly assignment: Assignment;
  /** Full name. */
  readonly model: string;
}

/** What an attempt sends if it starts now. */
export function callOfAttempt(run: RunState, attempt: AttemptStart, context: DecisionContext): AttemptCall {
  const { node, branch, seat } = attempt;
  const graphNode = nodeOf(run, attempt);
  const tools = toolsAsRecorded(graphNode.tools, context.isToolAvailable);
  const shown = shownAt(run, attempt, context.sha256);
  const assignment = assignmentOf(run, { node, branch, seat, tools, orderShown: shown.orderShown });
  return { graphNode, tools, shown, assignment, model: context.fullName(attempt.model ?? graphNode.model) };
}

/** What the first call of an attempt reserves. */
export function reservationOfCall(
  { graphNode, tools, assignment, model }: AttemptCall,
  context: DecisionContext,
): Reservation {
  const texts = textsSent(assignment.rendered);
  const price = context.priceOf(model);
  return reservationOf(graphNode, { texts, tools: grantedTools(tools).length, price });
}

/** Records the start of an attempt. */
export function startNode(pending: PendingEvents, attempt: AttemptStart, delayMs: number): void {
  const { run, context } = pending;
  const { node, step, seat } = attempt;
  if (run.plan.node(node).role === 'council') return startCouncil(pending, attempt, delayMs);
  const call = callOfAttempt(run, attempt, context);
  const { tools, shown, model } = call;
  const assignment = withSharedTexts(pending, call.assignment);
  const { rendered } = assignment;
  pending.assignments.set(callOf(attempt), assignment);
  const started = {
    step,
    node,
    attempt: attempt.attempt,
    iteration: run.progress.iterationCount,
    inputHash: promptHash(rendered, context.sha256),
    model,
    tools,
    delayMs,
  };
  const isPlain = seat === null && shown === NOTHING_SHOWN && run.spending === null;
  const rest = (): Partial<NodeStartedData> => ({
    ...memberOf(attempt),
    ...(shown.orderShown.length > 0 && { order_shown: [...shown.orderShown] }),
    ...(shown.masked.length > 0 && { masked: [...shown.masked] }),
    ...(run.spending !== null && { reserved: reservationOfCall(call, context) }),
  });
  // Node 20 is slow at spreads, and most starts need none.
  pending.write({ type: 'NodeStarted', data: isPlain ? started : { ...started, ...rest() } });
}

/** Records the start of a council. It sends no prompt: its input is the draft. */
function startCouncil(pending: PendingEvents, { node, step, attempt, branch }: AttemptStart, delayMs: number): void {
  const iteration = pending.run.progress.iterationCount;
  const inputHash = pending.context.sha256(branch.draft ?? '');
  pending.write({
    type: 'NodeStarted',
    data: { step, node, attempt, iteration, inputHash, model: '', tools: [], delayMs },
  });
}

/** The first attempts of a node's steps: one, or one of each member, numbered from a step. */
export function firstAttempts(
  run: RunState,
  { node, branch, step }: Pick<FrontierNode, 'node' | 'branch' | 'step'>,
): readonly AttemptStart[] {
  const first = { node, branch, step, attempt: 1, model: null, seat: null };
  if (!hasMembers(run.plan.node(node))) return [first];
  return membersOf(run.plan, first).map(({ id: member }, index) => {
    return { ...first, step: step + index, seat: emptySeat(member, step) };
  });
}

/** The first attempts of nodes that start now in this order. */
export function attemptsOfNodes(run: RunState, nodes: readonly string[]): readonly AttemptStart[] {
  let step = run.progress.steps + 1;
  return nodes.flatMap((node) => {
    const attempts = firstAttempts(run, { node, step, branch: branchInto(run, node, step) });
    step += attempts.length;
    return attempts;
  });
}

/** The first steps of these nodes if they start now in this order; further attempts of begun steps take none. */
export function firstSteps(run: RunState, nodes: readonly string[]): ReadonlyMap<string, number> {
  let step = run.progress.steps + 1;
  return new Map(
    nodes.map((node) => {
      const first = step;
      const isBegun = !run.progress.arrivals.some((each) => each.node === node);
      if (!isBegun) step += firstAttempts(run, { node, step, branch: branchInto(run, node, step) }).length;
      return [node, first];
    }),
  );
}

type Sha256 = DecisionContext['sha256'];

/** The order of the answers that a step's prompt shows, and the names that it hides. Pure: a reader can recompute both. */
export function shownAt(
  run: RunState,
  at: Pick<FrontierNode, 'node' | 'step' | 'branch' | 'seat'>,
  sha256: Sha256,
): { readonly orderShown: readonly string[]; readonly masked: readonly string[] } {
  if (at.branch.deliberation === null) return NOTHING_SHOWN;
  const orderShown = orderAt(run, at, sha256);
  return {
    orderShown,
    masked: shownTo(run.plan, placeOf(at), { order: orderShown, topic: run.progress.inputTopic }).masked,
  };
}

const NOTHING_SHOWN = { orderShown: [], masked: [] };

/** The order of the answers that a step's prompt shows. Pure, as shownAt. */
export function orderAt(
  run: RunState,
  at: Pick<FrontierNode, 'node' | 'step' | 'branch' | 'seat'>,
  sha256: Sha256,
): readonly string[] {
  return orderShownTo(run.plan, placeOf(at), { runId: run.runId, step: at.step, sha256 });
}

function placeOf({ node, branch, seat }: Pick<FrontierNode, 'node' | 'branch' | 'seat'>): StepPlace {
  return { node, branch, member: seat?.member ?? null };
}

/** The node of a step, with the settings of its member. */
export function nodeOf(run: RunState, at: Pick<FrontierNode, 'node' | 'branch' | 'seat'>): GraphNode {
  return stepNode(run.plan, placeOf(at));
}

/** What the first call of an attempt reserves. */
export function firstReservation(run: RunState, attempt: AttemptStart, context: DecisionContext): Reservation {
  // A council reserves a share for each run that it starts.
  if (run.plan.node(attempt.node).role === 'council') return { tokens: 0, usd: 0 };
  return reservationOfCall(callOfAttempt(run, attempt, context), context);
}

/** The hash of a prompt, as recorded at the start of its attempt. */
export function promptHash(rendered: RenderedPrompt, sha256: (text: string) => string): string {
  return sha256(`${rendered.system}\n${userMessage(rendered)}`);
}

/** What determines the prompt of an attempt. */
type PromptPlace = Pick<FrontierNode, 'node' | 'branch' | 'tools' | 'seat' | 'orderShown'>;

/** The prompt of an attempt: its input and the rendered texts. */
export function assignmentOf(run: RunState, at: PromptPlace): Assignment {
  const promptInput = promptInputFor(run, at);
  return { promptInput, rendered: renderPrompt(promptInput) };
}

/** The prompt input of an attempt. Pure: a reader can derive it from the attempt's NodeStarted event and those before. */
export function promptInputFor(run: RunState, at: PromptPlace): PromptInput {
  const { label, role, systemPrompt, schema, material: hasMaterial = true } = nodeOf(run, at);
  const { draft, deliberation } = at.branch;
  const feedback = at.branch.feedback.map(({ text }) => text);
  const topic = run.progress.inputTopic;
  const { material } = run.request;
  const data = material !== undefined && hasMaterial ? { topic, material } : { topic };
  const asked = schema === undefined ? data : { ...data, schema };
  const input = { label, role, systemPrompt, ...asked, draft, feedback, ...renderedTools(at.tools) };
  if (deliberation === null) return input;
  const shown = shownTo(run.plan, placeOf(at), { order: at.orderShown, topic }).input;
  return { ...input, ...shown, feedback: feedbackShownTo(run.plan, placeOf(at), at.orderShown) };
}
