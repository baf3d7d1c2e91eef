/** A run as an object of OpenAI's Responses API. */
import type { ResponseMessage, ResponseObject, ResponseText } from '../generated/schemas.js';
import { isOutput } from '../graph/output-node.js';
import { isRunId } from '../http/route.js';
import type { RunState } from '../run/state.js';
import { completedAtOf, failureOf } from '../run/state.js';
import { modelOf } from './council-model.js';
import { lacksOutput, resultOf } from './output-format.js';
import { responseUsage, tokensOf } from './usage.js';

/** The id of a run's response: `resp_` and the run id without dashes. */
function responseIdOf(runId: string): string {
  return `resp_${plain(runId)}`;
}

/** The id of the run of a response, or null if the text is no id of a response. */
export function runIdOfResponse(text: string): string | null {
  const runId = text.replace(/^resp_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return isRunId(runId) && runId !== text ? runId : null;
}

/** The id of the only message of a run. */
export function messageIdOf(runId: string): string {
  return `msg_${plain(runId)}`;
}

function plain(runId: string): string {
  return runId.replaceAll('-', '');
}

/** A time as seconds since 1970. */
export function secondsOf(at: string): number {
  return Math.floor(Date.parse(at) / 1_000);
}

/** The response of a run as it is now. */
export function responseOf(run: RunState): ResponseObject {
  const { phase, runId } = run;
  const completedAt = completedAtOf(run);
  const failure = failureOf(run);
  return {
    ...responseBase(run, statusOf(run)),
    incomplete_details: lacksOutput(run) ? { reason: 'max_output_tokens' } : null,
    ...(completedAt !== null && { completed_at: secondsOf(completedAt) }),
    error: failure === null || failure.kind === 'cancelled' ? null : { code: 'server_error', message: failure.error },
    output: phase.status === 'completed' ? [messageOf(runId, resultOf(run))] : [],
    ...(completedAt !== null && responseUsage(tokensOf(run))),
  };
}

/** The response of a run before its end. */
export function responseBase(
  { runId, createdAt, request: { blueprintId }, plan }: Pick<RunState, 'runId' | 'createdAt' | 'request' | 'plan'>,
  status: ResponseObject['status'],
): ResponseObject {
  const schema = plan.graph.nodes.find(isOutput)?.schema;
  return {
    id: responseIdOf(runId),
    object: 'response',
    created_at: secondsOf(createdAt),
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: { run_id: runId },
    model: modelOf(blueprintId),
    output: [],
    parallel_tool_calls: false,
    previous_response_id: null,
    store: true,
    temperature: null,
    text: { format: schema === undefined ? { type: 'text' } : { type: 'json_schema', name: 'output', schema } },
    tool_choice: 'none',
    tools: [],
    top_p: null,
  };
}

function statusOf(run: RunState): ResponseObject['status'] {
  switch (run.phase.status) {
    case 'pending':
      return 'queued';
    case 'running':
    case 'paused':
      return 'in_progress';
    case 'completed':
      return lacksOutput(run) ? 'incomplete' : 'completed';
    case 'failed':
      return run.phase.failure.kind === 'cancelled' ? 'cancelled' : 'failed';
  }
}

/** The final draft as a message. */
export function messageOf(runId: string, text: string): ResponseMessage {
  return { id: messageIdOf(runId), type: 'message', role: 'assistant', status: 'completed', content: [textOf(text)] };
}

/** A part of a message. */
export function textOf(text: string): ResponseText {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}
