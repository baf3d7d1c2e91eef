/** The events of a streamed response. The record of the run alone determines each of them and its number. */
import type { ResponseEvent } from '../generated/schemas.js';
import { finalDraftOf } from '../run/state.js';
import type { RunState } from '../run/state.js';
import { piecesOf } from './pieces.js';
import { messageIdOf, messageOf, responseBase, responseOf, textOf } from './response-object.js';

type Unnumbered = Omit<ResponseEvent, 'sequence_number'>;

/** A function that takes the run after each of its events, from the first, and returns the events that follow from it. */
export function responseEvents(): (run: RunState) => readonly ResponseEvent[] {
  let next = 0;
  let [isCreated, isBegun] = [false, false];
  return (run) => {
    const events: Unnumbered[] = [];
    if (!isCreated) events.push({ type: 'response.created', response: responseBase(run, 'queued') });
    isCreated = true;
    if (!isBegun && run.phase.status !== 'pending') {
      isBegun = true;
      events.push({ type: 'response.in_progress', response: responseBase(run, 'in_progress') });
    }
    if (run.phase.status === 'completed') events.push(...outputEvents(run));
    if (run.phase.status === 'failed') events.push({ type: 'response.failed', response: responseOf(run) });
    const first = next;
    next += events.length;
    return events.map((event, index) => ({ ...event, sequence_number: first + index }));
  };
}

/** The final draft as events, up to the end. */
function outputEvents(run: RunState): readonly Unnumbered[] {
  const text = finalDraftOf(run) ?? '';
  const item = messageOf(run.runId, text);
  const [inOutput, inItem] = [{ output_index: 0 } as const, { output_index: 0, content_index: 0 } as const];
  const ofItem = { item_id: messageIdOf(run.runId), ...inItem };
  return [
    { type: 'response.output_item.added', ...inOutput, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...ofItem, part: textOf('') },
    ...piecesOf(text).map((delta): Unnumbered => ({
      type: 'response.output_text.delta',
      ...ofItem,
      delta,
      logprobs: [],
    })),
    { type: 'response.output_text.done', ...ofItem, text, logprobs: [] },
    { type: 'response.content_part.done', ...ofItem, part: textOf(text) },
    { type: 'response.output_item.done', ...inOutput, item },
    { type: 'response.completed', response: responseOf(run) },
  ];
}
