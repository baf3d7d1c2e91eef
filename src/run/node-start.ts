/** The start of a node's attempt, with its prompt and tools. */
import type { RenderedPrompt } from '../council/prompt.js';
import { renderPrompt } from '../council/prompt.js';
import { grantedTools, renderedTools, toolsAsRecorded } from '../council/tools/tool.js';
import type { PromptInput } from '../models/port.js';
import type { GraphNode, Reservation } from '../generated/schemas.js';
import { reservationOf } from './budget/spending.js';
import type { StepPlace } from './deliberation.js';
import { hasMembers, membersOf, orderShownTo, shownTo, stepNode } from './deliberation.js';
import type { Assignment, DecisionContext, PendingEvents } from './pending-events.js';
import { callOf } from './pending-events.js';
import type { FrontierNode, RunState } from './state.js';
import { memberOf } from './state.js';

/** Records the start of a step's next attempt. */
export function startNextAttempt(pending: PendingEvents, at: FrontierNode, delayMs: number): void {
  startNode(pending, { ...at, attempt: at.attempt + 1 }, delayMs);
}

/** What determines an attempt that is to start. */
export type AttemptStart = Pick<FrontierNode, 'node' | 'step' | 'attempt' | 'model' | 'branch' | 'seat'>;

/** Records the start of an attempt. */
export function startNode(pending: PendingEvents, attempt: AttemptStart, delayMs: number): void {
  const { run, context } = pending;
  const { node, step } = attempt;
  const place = placeOf(attempt);
  const tools = toolsAsRecorded(run.plan.node(node).tools, context.isToolAvailable);
  const orderShown = orderShownTo(run.plan, place, { runId: run.runId, step, sha256: context.sha256 });
  const assignment = assignmentOf(run, { ...attempt, tools, orderShown });
  const { masked } = shownTo(run.plan, place, orderShown);
  const name = attempt.model ?? context.fullName(stepNode(run.plan, place).model);
  pending.assignments.set(callOf(attempt), assignment);
  pending.write({
    type: 'NodeStarted',
    data: {
      ...{ step, node, attempt: attempt.attempt },
      ...memberOf(attempt),
      ...(orderShown.length > 0 && { order_shown: [...orderShown] }),
      ...(masked.length > 0 && { masked: [...masked] }),
      iteration: run.progress.iterationCount,
      inputHash: promptHash(assignment.rendered, context.sha256),
      model: name,
      tools,
      delayMs,
      ...(run.spending !== null && { reserved: reservationFor(run, attempt, { ...assignment, tools, name, context }) }),
    },
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
    const seat = { member, panelStep: step, until: null, output: null, error: null };
    return { ...first, step: step + index, seat };
  });
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
  const { step, model } = attempt;
  const graphNode = nodeOf(run, attempt);
  const tools = toolsAsRecorded(graphNode.tools, context.isToolAvailable);
  const orderShown = orderShownTo(run.plan, placeOf(attempt), { runId: run.runId, step, sha256: context.sha256 });
  const { rendered } = assignmentOf(run, { ...attempt, tools, orderShown });
  return reservationFor(run, attempt, { rendered, tools, name: model ?? context.fullName(graphNode.model), context });
}

function reservationFor(
  run: RunState,
  attempt: AttemptStart,
  {
    rendered,
    tools,
    name,
    context,
  }: {
    readonly rendered: RenderedPrompt;
    readonly tools: readonly string[];
    /** Full name of the model. */
    readonly name: string;
    readonly context: DecisionContext;
  },
): Reservation {
  const texts = [rendered.system, rendered.prompt];
  const price = context.priceOf(name);
  return reservationOf(nodeOf(run, attempt), { texts, tools: grantedTools(tools).length, price });
}

/** The hash of a prompt, as recorded at the start of its attempt. */
export function promptHash({ system, prompt }: RenderedPrompt, sha256: (text: string) => string): string {
  return sha256(`${system}\n${prompt}`);
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
  const { label, role, systemPrompt } = nodeOf(run, at);
  const feedback = at.branch.feedback.map(({ text }) => text);
  return {
    label,
    role,
    systemPrompt,
    topic: run.progress.inputTopic,
    ...shownTo(run.plan, placeOf(at), at.orderShown).input,
    feedback,
    ...renderedTools(at.tools),
  };
}
