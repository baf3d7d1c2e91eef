/** The events of a run, typed by their `type`. */
import type { RunFacts } from '../generated/schemas.js';
import { UnexpectedAnswerError, UnreachableError } from './errors.js';
import type { StreamedMessage } from './event-stream.js';
import { reader, streamed } from './event-stream.js';
import type { Api, CallOptions } from './http.js';
import { jsonIn, pathOf } from './http.js';

/**
 * A recorded event of a run. `type` determines the type of `data`. A newer service may send further types, so a `switch`
 * needs a `default`.
 */
export type RunEvent = {
  [Type in keyof RunFacts]: {
    /** Number of the event in the run, from 0. */
    readonly seq: number;
    readonly id: string;
    readonly type: Type;
    /** ISO 8601, UTC, milliseconds. */
    readonly at: string;
    readonly data: RunFacts[Type];
    /** Hash of the event and of the previous hash: the hash chain. */
    readonly hash: string;
  };
}[keyof RunFacts];

export interface EventsOptions extends CallOptions {
  /** `seq` of the last known event. The stream begins after it. Default: -1, with the first event. */
  readonly from?: number | undefined;
}

/**
 * The events of a run as they are recorded, each once, for `for await`. A second loop continues after the last event. One
 * loop at a time.
 */
export interface RunEventStream extends AsyncIterable<RunEvent> {
  /** `seq` of the last event, with which another stream continues as its `from`. */
  readonly lastSeq: number;
}

export function runEventStream(api: Api, runId: string, { from = -1, signal }: EventsOptions): RunEventStream {
  const path = pathOf('runs', runId, 'stream');
  let lastSeq = from;
  const next = (event: RunEvent): RunEvent | null => {
    if (event.seq <= lastSeq) return null;
    // An event is missing. After a reconnect the service sends it again.
    if (event.seq > lastSeq + 1) throw new UnreachableError(api.url);
    lastSeq = event.seq;
    return event;
  };
  async function* events(reading: AbortSignal): AsyncGenerator<RunEvent, void> {
    const after = lastSeq < 0 ? null : String(lastSeq);
    const read = ({ data }: StreamedMessage): RunEvent | null => next(runEventIn(data));
    for await (const event of streamed(api, { path, after, read, signal: reading })) {
      yield event;
      if (isTerminal(event)) return;
    }
  }
  return {
    get lastSeq() {
      return lastSeq;
    },
    [Symbol.asyncIterator]: () => reader(events, signal),
  };
}

/** Whether an event is the last one of its run. */
export function isTerminal({ type }: Pick<RunEvent, 'type'>): boolean {
  return type === 'RunCompleted' || type === 'RunFailed';
}

/** The event in a JSON text. @throws {UnexpectedAnswerError} */
export function runEventIn(text: string): RunEvent {
  const value = jsonIn(text);
  if (isRunEvent(value)) return value;
  throw new UnexpectedAnswerError('The service sent a message that is not an event', { status: 200 });
}

function isRunEvent(value: unknown): value is RunEvent {
  if (typeof value !== 'object' || value === null) return false;
  return 'seq' in value && Number.isSafeInteger(value.seq) && 'type' in value && typeof value.type === 'string';
}
