/** The start of a node's attempt, with its prompt and tools. */
import type { RenderedPrompt } from '../council/prompt.js';
import { renderPrompt } from '../council/prompt.js';
import { grantedTools, renderedTools, toolsAsRecorded } from '../council/tools/tool.js';
import type { PromptInput } from '../models/port.js';
import type { Reservation } from '../generated/schemas.js';
import { reservationOf } from './budget/spending.js';
import type { Assignment, DecisionContext, PendingEvents } from './pending-events.js';
import { callOf } from './pending-events.js';
import type { FrontierNode, RunState } from './state.js';

/** Records the start of a step's next attempt. */
export function startNextAttempt(pending: PendingEvents, at: FrontierNode, delayMs: number): void {
  startNode(pending, { ...at, attempt: at.attempt + 1 }, delayMs);
}

/** Records the start of an attempt. */
export function startNode(
  pending: PendingEvents,
  { node, step, attempt, model, branch }: Pick<FrontierNode, 'node' | 'step' | 'attempt' | 'model' | 'branch'>,
  delayMs: number,
): void {
  const { run, context } = pending;
  const tools = toolsAsRecorded(run.plan.node(node).tools, context.isToolAvailable);
  const assignment = assignmentOf(run, { node, branch, tools });
  const { rendered } = assignment;
  const name = model ?? context.fullName(run.plan.node(node).model);
  pending.assignments.set(callOf({ step, attempt }), assignment);
  pending.write({
    type: 'NodeStarted',
    data: {
      step,
      node,
      attempt,
      iteration: run.progress.iterationCount,
      inputHash: promptHash(rendered, context.sha256),
      model: name,
      tools,
      delayMs,
      ...(run.spending !== null && { reserved: reservationFor(run, { node, tools, model: name, rendered }, context) }),
    },
  });
}

/** What the first call of an attempt reserves. */
export function firstReservation(
  run: RunState,
  { node, branch, model }: Pick<FrontierNode, 'node' | 'branch' | 'model'>,
  context: DecisionContext,
): Reservation {
  const graphNode = run.plan.node(node);
  const tools = toolsAsRecorded(graphNode.tools, context.isToolAvailable);
  const { rendered } = assignmentOf(run, { node, branch, tools });
  return reservationFor(run, { node, tools, model: model ?? context.fullName(graphNode.model), rendered }, context);
}

/** What determines the request of an attempt's first call. */
interface AttemptRequest extends Pick<FrontierNode, 'node' | 'tools'> {
  readonly model: string;
  readonly rendered: RenderedPrompt;
}

function reservationFor(
  run: RunState,
  { node, tools, model, rendered }: AttemptRequest,
  { priceOf }: DecisionContext,
): Reservation {
  const texts = [rendered.system, rendered.prompt];
  return reservationOf(run.plan.node(node), { texts, tools: grantedTools(tools).length, price: priceOf(model) });
}

/** The hash of a prompt, as recorded at the start of its attempt. */
export function promptHash({ system, prompt }: RenderedPrompt, sha256: (text: string) => string): string {
  return sha256(`${system}\n${prompt}`);
}

/** The prompt of an attempt: its input and the rendered texts. */
export function assignmentOf(run: RunState, at: Pick<FrontierNode, 'node' | 'branch' | 'tools'>): Assignment {
  const promptInput = promptInputFor(run, at);
  return { promptInput, rendered: renderPrompt(promptInput) };
}

/** The prompt input of an attempt. Pure: a reader can derive it from the attempt's NodeStarted event and those before. */
export function promptInputFor(
  run: RunState,
  { node, branch, tools }: Pick<FrontierNode, 'node' | 'branch' | 'tools'>,
): PromptInput {
  const { label, role, systemPrompt } = run.plan.node(node);
  const feedback = branch.feedback.map(({ text }) => text);
  return {
    label,
    role,
    systemPrompt,
    topic: run.progress.inputTopic,
    draft: branch.draft,
    feedback,
    ...renderedTools(tools),
  };
}
