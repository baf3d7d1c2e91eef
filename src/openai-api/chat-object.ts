/** Chat completions and their chunks. */
import type { ChatChunk, ChatCompletion, ChatUsage } from '../generated/schemas.js';
import type { RunState } from '../run/state.js';
import { modelOf } from './council-model.js';
import { lacksOutput, resultOf } from './output-format.js';
import { piecesOf } from './pieces.js';
import { secondsOf } from './response-object.js';
import { chatUsage, tokensOf } from './usage.js';

/** What all chunks of a completion have in common. */
export type ChatHead = Pick<ChatCompletion, 'id' | 'created' | 'model' | 'council'>;

/** The head of a run's completion. */
export function headOf({ runId, createdAt, request }: Pick<RunState, 'runId' | 'createdAt' | 'request'>): ChatHead {
  return {
    id: `chatcmpl-${runId.replaceAll('-', '')}`,
    created: secondsOf(createdAt),
    model: modelOf(request.blueprintId),
    council: { run_id: runId },
  };
}

/** A text as a completion. */
export interface ChatText {
  readonly head: ChatHead;
  readonly content: string;
  /** Why it ends here: `length` if the budget did not reach the exact output. Default: `stop`. */
  readonly finish?: ChatCompletion['choices'][number]['finish_reason'];
  /** Absent if it is unknown. */
  readonly usage?: ChatUsage;
}

/** The final draft of a completed run. */
export function chatTextOf(run: RunState): ChatText {
  const finish = lacksOutput(run) ? 'length' : 'stop';
  return { head: headOf(run), content: resultOf(run), finish, ...chatUsage(tokensOf(run)) };
}

export function completionOf({ head, content, finish = 'stop', ...usage }: ChatText): ChatCompletion {
  const { id, created, model, council } = head;
  const message = { role: 'assistant', content, refusal: null } as const;
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    ...usage,
    ...(council !== undefined && { council }),
  };
}

/** The bytes of the first chunk. */
export function openingChunk(head: ChatHead): Buffer {
  return encoded(chunkOf(head, { role: 'assistant', content: '' }));
}

/** The bytes of a line of progress. */
export function progressChunk(head: ChatHead, line: string): Buffer {
  return encoded(chunkOf(head, { reasoning_content: `${line}\n` }));
}

/** The bytes of a text after the first chunk, up to the end of the stream. */
export function textChunks(
  { head, content, finish = 'stop', usage }: ChatText,
  includeUsage: boolean,
): readonly Buffer[] {
  const pieces = piecesOf(content).map((piece) => chunkOf(head, { content: piece }));
  const end = chunkOf(head, {}, finish);
  const counted = includeUsage && usage !== undefined ? [{ ...end, choices: [], usage }] : [];
  return [...[...pieces, end, ...counted].map(encoded), Buffer.from('data: [DONE]\n\n')];
}

type Choice = ChatChunk['choices'][number];

function chunkOf(head: ChatHead, delta: Choice['delta'], finish: Choice['finish_reason'] = null): ChatChunk {
  const { id, created, model, council } = head;
  return {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(council !== undefined && { council }),
  };
}

/** The bytes of any value as an event without a name. */
export function encoded(value: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
}
