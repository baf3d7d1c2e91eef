/** The prompt of a node, rendered again from the record and compared with the recorded hash. */
import { canonical } from '../eventsourcing/canonical-json.js';
import { userMessage } from '../models/material.js';
import type { StepPrompt } from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import { assignmentOf, promptHash, shownAt } from '../run/frontier/node-start.js';
import type { RunState } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import { present } from '../system/element.js';

/** An attempt of a step. */
export interface AttemptPlace {
  readonly step: number;
  /** Default: the last one. */
  readonly attempt?: number | undefined;
}

/**
 * The prompt, or `no-run` without events, or `no-attempt` if no event starts the attempt, or `no-prompt` if the step is of a
 * council, which asks no model itself.
 */
export type PromptFound = StepPrompt | 'no-run' | 'no-attempt' | 'no-prompt';

type Started = Extract<RunEvent, { type: 'NodeStarted' }>;
type Completed = Extract<RunEvent, { type: 'NodeCompleted' }>;

interface PromptDeps {
  readonly sha256: (text: string) => string;
}

/**
 * The prompt of an attempt. A fork has only its own steps; its parent has the earlier ones.
 *
 * @param events in order, from the first
 * @throws {RunCorrupt} an event is invalid; also throws what the iteration throws
 */
export async function promptOf(
  runId: string,
  events: AsyncIterable<RunEvent>,
  { step, attempt, sha256 }: AttemptPlace & PromptDeps,
): Promise<PromptFound> {
  let run: RunState | null = null;
  let found: StepPrompt | null = null;
  for await (const recorded of events) {
    const event = upcast(recorded);
    run = foldNext(runId, run, event);
    if (!isStartOrEnd(event) || event.data.step !== step) continue;
    if (event.type === 'NodeCompleted') break;
    if (event.data.model === '') return 'no-prompt';
    if ((attempt ?? event.data.attempt) === event.data.attempt) found = promptAt(event, run, { sha256 });
    if (event.data.attempt === attempt) break;
  }
  if (run === null) return 'no-run';
  return found ?? 'no-attempt';
}

/** No attempt of a step follows its completion. */
function isStartOrEnd(event: RunEvent): event is Started | Completed {
  return event.type === 'NodeStarted' || event.type === 'NodeCompleted';
}

function promptAt({ seq, at, data }: Started, run: RunState, { sha256 }: PromptDeps): StepPrompt {
  const { step, attempt, node, member, model, tools, inputHash, order_shown, masked } = data;
  const started = present(
    run.progress.frontier.find((each) => each.step === step),
    `step ${step} once it is started`,
  );
  const { promptInput, rendered } = assignmentOf(run, started);
  const { label, role, topic, draft, feedback } = promptInput;
  const shown = shownAt(run, started, sha256);
  const isSame =
    promptHash(rendered, sha256) === inputHash &&
    canonical([...shown.masked]) === canonical(masked ?? []) &&
    canonical([...shown.orderShown]) === canonical(order_shown ?? []);
  return {
    run_id: run.runId,
    seq,
    at,
    step,
    attempt,
    node,
    ...(member !== undefined && { member }),
    label,
    role,
    model,
    tools,
    ...(order_shown !== undefined && { order_shown }),
    ...(masked !== undefined && { masked }),
    inputs: { input_topic: topic, current_draft: draft, feedback_history: [...feedback] },
    system: rendered.system,
    prompt: userMessage(rendered),
    prompt_hash: inputHash,
    verified: isSame,
  };
}
