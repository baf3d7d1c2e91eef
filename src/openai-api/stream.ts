/** Answers a run's events as a stream. */
import type { RouterContext } from '@koa/router';
import type { Answer } from '../http/answer.js';
import type { EventSink } from '../http/event-stream.js';
import { EVENT_STREAM_HEADERS, eventStream } from '../http/event-stream.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../run/state.js';
import type { Connection, FollowDeps } from './followed-run.js';
import { follow } from './followed-run.js';

/** Name of the header with the run's id. */
export const RUN_ID_HEADER = 'Council-Run-Id';

/** What a stream sends after each event of the run, as bytes. */
export type Encode = (run: RunState, event: RunEvent) => readonly Buffer[];

/** A comment at once, so that no proxy closes the connection, then what `encode` returns, until the run has ended. */
export async function streamAnswer(
  deps: FollowDeps,
  connection: Connection,
  { ctx, encode }: { readonly ctx: RouterContext; readonly encode: Encode },
): Promise<Answer> {
  const { runId, caller } = connection;
  const { http } = deps;
  const deliver = async (sink: EventSink): Promise<void> => {
    let taken: Promise<void> = Promise.resolve();
    const onState = (run: RunState, event: RunEvent): Promise<void> => {
      for (const bytes of encode(run, event)) taken = sink.send(bytes);
      return taken;
    };
    sink.begin();
    await follow(deps, connection, { signal: sink.signal, onState });
  };
  const opening = comment(`run ${runId}`);
  const body = await eventStream({ http, response: ctx.res, caller, deliver, opening });
  return { status: 200, headers: { ...EVENT_STREAM_HEADERS, [RUN_ID_HEADER]: runId }, body };
}

/** A comment of a stream, which clients ignore. @param line without line breaks */
export function comment(line: string): Buffer {
  return Buffer.from(`: ${line}\n\n`);
}
