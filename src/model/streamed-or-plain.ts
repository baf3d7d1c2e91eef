import { ModelFailed } from '../errors.js';
import type { ModelAnswer, ModelRequest } from './port.js';

type Ask = (request: ModelRequest) => Promise<ModelAnswer>;

/**
 * Makes calls that somebody listens to on a server that may not stream at another address than it answers at: one that
 * fails as only a stream may, before a word of it was heard, is made again plainly and heard whole. No run depends on
 * who listens. A server that has no such address is not asked for a stream again.
 */
export function streamedOrPlain(): (request: ModelRequest, ask: Ask) => Promise<ModelAnswer> {
  let isMute = false;
  return async ({ onToken, ...plain }, ask) => {
    if (onToken === undefined) return ask(plain);
    const streamed = isMute ? NOT_ASKED : await stream(plain, { ask, onToken });
    if ('text' in streamed) return streamed;
    const answer = await ask(plain);
    isMute ||= streamed.isAddressUnknown;
    if (answer.text !== '') onToken(answer.text);
    return answer;
  };
}

interface Unstreamed {
  readonly isAddressUnknown: boolean;
}

async function stream(
  plain: ModelRequest,
  { ask, onToken }: { readonly ask: Ask; readonly onToken: (text: string) => void },
): Promise<ModelAnswer | Unstreamed> {
  const heard = { something: false };
  const listen = (text: string): void => {
    heard.something = true;
    onToken(text);
  };
  try {
    return await ask({ ...plain, onToken: listen });
  } catch (error) {
    const kind = error instanceof ModelFailed ? error.data.kind : '';
    if (heard.something || !(ADDRESS_UNKNOWN.has(kind) || NO_STREAM.has(kind))) throw error;
    return { isAddressUnknown: ADDRESS_UNKNOWN.has(kind) };
  }
}

const NOT_ASKED: Unstreamed = { isAddressUnknown: true };

/** 404, 405 and the like. */
const ADDRESS_UNKNOWN: ReadonlySet<string> = new Set(['model_unknown', 'http_error']);

/** What comes of a whole answer, or half a one, read as a stream; the next may be a good one. */
const NO_STREAM: ReadonlySet<string> = new Set(['unreadable_answer', 'no_candidates']);
