/** What a node's model was given by a tool, in short. */
import type { GenealogyPassage, GenealogyToolCall, ToolHit } from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import { clipped } from './in-short.js';

/** Most code points told of an address or a title that a stranger wrote. */
const MAX_WEB_CHARS = 300;

export function toolCallOf({ seq, data }: Extract<RunEvent, { type: 'ToolCalled' }>): GenealogyToolCall {
  return { seq, tool: clipped(data.tool, MAX_WEB_CHARS), error: data.error, passages: data.hits.map(passageOf) };
}

function passageOf(hit: ToolHit): GenealogyPassage {
  if ('document' in hit) return hit;
  return { url: clipped(hit.url, MAX_WEB_CHARS), title: clipped(hit.title, MAX_WEB_CHARS), score: hit.score };
}
