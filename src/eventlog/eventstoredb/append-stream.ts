/** One streaming call of appends: many are sent without waiting, answers arrive as the server makes them. */
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { AppendOutcomeUnknown } from '../../errors.js';
import type { Appended } from '../port.js';
import type { CheckedAppend } from './append-message.js';
import { appendMessage, correlationIdOf, outcomeOf } from './append-message.js';
import type { AppendAnswer, AppendRequest } from './wire.js';

/** The server marks this state by its text alone. */
const NOT_READY = 'Server Is Not Ready';

/** An append on its way, and who waits for it. */
export interface Dispatch {
  readonly append: CheckedAppend;
  readonly serverStream: string;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

/** Owns one call. When it ends, the outcome of every unanswered append is unknown. */
export class AppendLine {
  readonly #call: ClientDuplexStream<AppendRequest, AppendAnswer>;
  readonly #unanswered = new Map<string, Dispatch>();
  readonly #onEnd: (error: Error) => void;
  #sent = 0;
  #heard = 0;
  #isOpen = true;

  /** `onEnd` is called once with the reason why the line has ended, before the waiting appends are rejected. */
  constructor(call: ClientDuplexStream<AppendRequest, AppendAnswer>, onEnd: (error: Error) => void) {
    this.#call = call;
    this.#onEnd = onEnd;
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
      const outcome = outcomeOf(answer, dispatch.append);
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
    this.#onEnd(error);
    for (const { append, reject } of this.#unanswered.values())
      reject(new AppendOutcomeUnknown({ stream: append.stream }, { cause: error }));
    this.#unanswered.clear();
  }
}

/** Whether the node is cut off from its cluster: it answers so for as long as it is; another may lead meanwhile. */
function isUnready(answer: AppendAnswer): boolean {
  return answer.error?.message === NOT_READY;
}
