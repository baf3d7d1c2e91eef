/** Appends with a deadline each, over a line that is opened when needed and reopened when it ends. */
import { elementAt } from '../../system/element.js';
import type { System } from '../../system/system.js';
import { AppendInvalid, AppendOutcomeUnknown, AppendTooLarge, LogUnavailable, RevisionConflict } from '../errors.js';
import { wait } from '../../system/async/deadline.js';
import type { Appended, ExpectedRevision, NewEvent } from '../port.js';
import type { Connection, Route } from './connection.js';
import type { AppendAnswer, AppendRequest } from './wire.js';
import {
  batchAppend,
  decodeBadRequest,
  decodeMaximumAppendSizeExceeded,
  decodeWrongExpectedVersion,
  narrow,
} from './wire.js';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { hex, positionOf } from './read-message.js';

/** Most appends without an answer; more are refused, certainly not sent. */
export const MAX_WAITING = 20_000;
const MAX_WAITING_CHARS = 64 * 1024 * 1024;

/** Wait between attempts to reach the server, in milliseconds. */
const RECONNECT_MS = 100;

export interface AppenderOptions {
  readonly connection: Connection;
  readonly system: Pick<System, 'after'>;
  /** From the call to the answer, in milliseconds. */
  readonly deadlineMs: number;
}

interface Waiting {
  readonly dispatch: Parameters<AppendLine['send']>[0];
  /** The line it was sent on, and how many answers that had received. Null: not sent yet. */
  sent: { readonly line: AppendLine; readonly route: Route; readonly id: string; readonly heard: number } | null;
}

interface OpenLine {
  readonly line: AppendLine;
  readonly route: Route;
}

/** Sends each append once; when no answer comes, the caller finds out the outcome by appending again. */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #stopping = new AbortController();
  /** All appends without an answer. */
  readonly #unanswered = new Set<Promise<Appended>>();
  /** Unanswered appends by a key of stream, revision and first id, to find a repeated append. */
  readonly #inFlight = new Map<string, { readonly append: CheckedAppend; readonly answer: Promise<Appended> }>();
  #unsent = new Set<Waiting>();
  #chars = 0;
  #open: OpenLine | null = null;
  #isConnecting = false;
  #fault: unknown = null;

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /**
   * Resolves once durable; rejects with the errors of `EventLog.append`. The same append made again while the first is
   * in flight shares its answer: the server would leave the second without one.
   */
  append(append: CheckedAppend, serverStream: string): Promise<Appended> {
    const key = `${String(append.expected)} ${elementAt(append.events, 0).id} ${append.stream}`;
    const first = this.#inFlight.get(key);
    if (first !== undefined && hasSameIds(first.append, append)) return first.answer;
    const chars = append.events.reduce((sum, { data }) => sum + data.length, 0);
    if (this.#unanswered.size >= MAX_WAITING || this.#chars + chars > MAX_WAITING_CHARS)
      return Promise.reject(new LogUnavailable());
    const answer = this.#dispatch(append, serverStream);
    if (first === undefined) this.#inFlight.set(key, { append, answer });
    this.#unanswered.add(answer);
    this.#chars += chars;
    const settled = (): void => {
      if (first === undefined) this.#inFlight.delete(key);
      this.#unanswered.delete(answer);
      this.#chars -= chars;
    };
    answer.then(settled, settled);
    return answer;
  }

  /** Waits for every answer, none longer than its deadline; then nothing may be appended any more. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#unanswered);
    this.#stopping.abort();
    this.#open?.line.close();
  }

  #dispatch(append: CheckedAppend, serverStream: string): Promise<Appended> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        sent: null,
        dispatch: {
          append,
          serverStream,
          resolve: (appended) => {
            cancel();
            resolve(appended);
          },
          reject: (error) => {
            cancel();
            reject(error);
          },
        },
      };
      const { system, deadlineMs } = this.#options;
      // A turn later, because Node runs timers before it reads sockets: after a stall of this process, such as a laptop's
      // sleep, the answer may be there already.
      let cancel = system.after(deadlineMs, () => {
        cancel = system.after(0, () => this.#expire(waiting));
      });
      if (this.#open !== null && this.#open.line.isOpen) return this.#send(waiting, this.#open);
      this.#unsent.add(waiting);
      if (!this.#isConnecting) void this.#connect();
    });
  }

  #send(waiting: Waiting, { line, route }: OpenLine): void {
    waiting.sent = { line, route, id: line.send(waiting.dispatch), heard: line.heard };
  }

  /** Gives an append up at its deadline, and the connection too if its line has received nothing since. */
  #expire({ sent, dispatch }: Waiting): void {
    const { connection, deadlineMs } = this.#options;
    const { stream } = dispatch.append;
    if (sent === null) {
      for (const waiting of this.#unsent) if (waiting.dispatch === dispatch) this.#unsent.delete(waiting);
      return dispatch.reject(new LogUnavailable({ cause: this.#fault }));
    }
    sent.line.forget(sent.id);
    dispatch.reject(new AppendOutcomeUnknown({ stream }, { cause: new Error(`No answer within ${deadlineMs} ms`) }));
    if (sent.line.heard === sent.heard) connection.replace(sent.route);
  }

  async #connect(): Promise<void> {
    const { connection, system } = this.#options;
    this.#isConnecting = true;
    while (this.#unsent.size > 0 && !this.#stopping.signal.aborted) {
      try {
        const open = this.#opened(await connection.route());
        this.#open = open;
        const unsent = this.#unsent;
        this.#unsent = new Set();
        for (const waiting of unsent) this.#send(waiting, open);
      } catch (error) {
        this.#fault = error;
        await wait(system, RECONNECT_MS, this.#stopping.signal);
      }
    }
    this.#isConnecting = false;
  }

  #opened(route: Route): OpenLine {
    const { connection } = this.#options;
    const call = connection.begin(route, batchAppend);
    const onEnd = (error: Error): void => connection.failed(route, error);
    return { route, line: new AppendLine(call, { onEnd, quoted: (words) => connection.quoted(words) }) };
  }
}

function hasSameIds(one: CheckedAppend, other: CheckedAppend): boolean {
  if (one.events.length !== other.events.length) return false;
  return one.events.every(({ id }, index) => id === other.events[index]?.id);
}

// One streaming call of appends: many are sent without waiting, answers arrive as the server makes them.

/** The server marks this state by its text alone. */
const NOT_READY = 'Server Is Not Ready';

/** An append on its way, and its waiting caller. */
export interface Dispatch {
  readonly append: CheckedAppend;
  readonly serverStream: string;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

interface AppendLineOptions {
  /** Called once with the reason why the line has ended, before the waiting appends are rejected. */
  readonly onEnd: (error: Error) => void;
  /** The server's words without the credentials. */
  readonly quoted: (words: string) => string;
}

/** Owns one call. When it ends, the outcome of every unanswered append is unknown. */
class AppendLine {
  readonly #call: ClientDuplexStream<AppendRequest, AppendAnswer>;
  readonly #unanswered = new Map<string, Dispatch>();
  readonly #options: AppendLineOptions;
  #sent = 0;
  #heard = 0;
  #isOpen = true;

  constructor(call: ClientDuplexStream<AppendRequest, AppendAnswer>, options: AppendLineOptions) {
    this.#call = call;
    this.#options = options;
    call.on('data', (answer: AppendAnswer) => this.#hear(answer));
    call.on('error', (error) => this.#end(error));
    call.on('end', () => this.#end(new Error('The server ended the stream of appends')));
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Answers received so far: a line that receives none while an append waits for its deadline may be dead. */
  get heard(): number {
    return this.#heard;
  }

  /** Sends an append; what the socket does not take at once waits in the call. Returns the id for `forget`. */
  send(dispatch: Dispatch): string {
    this.#sent += 1;
    // Unique within the call, which is all the server requires.
    const id = `00000000-0000-4000-8000-${this.#sent.toString(16).padStart(12, '0')}`;
    this.#unanswered.set(id, dispatch);
    this.#call.write(appendMessage(id, dispatch.serverStream, dispatch.append));
    return id;
  }

  /** Drops an append: an answer that still comes is ignored. */
  forget(id: string): void {
    this.#unanswered.delete(id);
  }

  close(): void {
    this.#call.cancel();
  }

  #hear(answer: AppendAnswer): void {
    this.#heard += 1;
    if (isUnready(answer)) return this.#end(Object.assign(new Error(NOT_READY), { code: status.UNAVAILABLE }));
    const id = correlationIdOf(answer);
    const dispatch = this.#unanswered.get(id);
    if (dispatch === undefined) return;
    this.#unanswered.delete(id);
    try {
      const outcome = outcomeOf(answer, dispatch.append, this.#options.quoted);
      if (outcome instanceof Error) dispatch.reject(outcome);
      else dispatch.resolve(outcome);
    } catch (cause) {
      dispatch.reject(new AppendOutcomeUnknown({ stream: dispatch.append.stream }, { cause }));
    }
  }

  #end(error: Error): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#call.cancel();
    this.#options.onEnd(error);
    for (const { append, reject } of this.#unanswered.values())
      reject(new AppendOutcomeUnknown({ stream: append.stream }, { cause: error }));
    this.#unanswered.clear();
  }
}

/** Whether the node is cut off from its cluster: it answers so for as long as it is; another may lead meanwhile. */
function isUnready(answer: AppendAnswer): boolean {
  return answer.error?.message === NOT_READY;
}

// Encodes appends for the wire and interprets the server's answers.

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision | 'any';
  /** Each event's metadata as JSON. */
  readonly metadata: readonly string[];
}

/** An append to a stream by its server name. Without a deadline: the server's own, 2 s, needs no common clock. */
function appendMessage(
  correlationId: string,
  serverStream: string,
  { events, expected, metadata }: CheckedAppend,
): AppendRequest {
  const stream = { name: serverStream };
  return {
    correlationId: { string: correlationId },
    options: typeof expected === 'number' ? { stream, position: expected } : { stream, ...NOT_AT[expected] },
    proposed: events.map(({ id, type, data }, index) => ({
      id: { string: id },
      metadata: { type, 'content-type': 'application/json' },
      customMetadata: elementAt(metadata, index),
      data,
    })),
    isFinal: true,
  };
}

const NOT_AT = { none: { noStream: {} }, any: { any: {} } } as const;

/** The id of the append that an answer belongs to. */
function correlationIdOf({ correlationId }: AppendAnswer): string {
  const structured = correlationId?.structured ?? null;
  if (structured === null) return correlationId?.string ?? '';
  // To an id sent as text the server answers with two signed 64-bit numbers.
  return (hex(structured.most) + hex(structured.least)).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The outcome of an append; unknown where the server's answer does not exclude that it was written. */
function outcomeOf(
  { success, error }: AppendAnswer,
  { stream, expected }: CheckedAppend,
  quoted: AppendLineOptions['quoted'],
): Appended | Error {
  const position = success?.position ?? null;
  if (success !== null && position !== null)
    return { revision: narrow(success.revision), position: positionOf(position) };
  const { typeUrl, value } = error?.details ?? { typeUrl: '', value: new Uint8Array() };
  switch (typeUrl.slice(typeUrl.lastIndexOf('/') + 1)) {
    case 'event_store.client.WrongExpectedVersion':
      return new RevisionConflict({
        stream,
        expected: expected === 'any' ? 'none' : expected,
        actual: actualIn(value),
      });
    case 'event_store.client.StreamDeleted':
      return new AppendInvalid({ stream, reason: 'the stream was deleted' });
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const { limit } = decodeMaximumAppendSizeExceeded(value);
      return new AppendTooLarge({ stream, bytes: limit + 1, limit });
    }
    case 'event_store.client.BadRequest':
      return new AppendInvalid({ stream, reason: quoted(decodeBadRequest(value).message) });
    case 'event_store.client.AccessDenied':
      return new LogUnavailable({ cause: new Error(`The server denies access to "${stream}"`) });
    default: {
      const said = quoted(error?.message ?? 'The answer is empty');
      return new AppendOutcomeUnknown({ stream }, { cause: new Error(said) });
    }
  }
}

function actualIn(bytes: Uint8Array): 'none' | number {
  const { revision, noStream } = decodeWrongExpectedVersion(bytes);
  return noStream === null ? narrow(revision) : 'none';
}
