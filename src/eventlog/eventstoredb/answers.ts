/** The answers of one read or subscription of the server. */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { Clients, ReadStream } from './clients.js';
import { ServerSilent } from './idle-timeout.js';
import type { ReadAnswer } from './streams-service.js';

/** Answers, and characters of their data, that wait here for a slow reader; the others wait at the server. */
const MAX_ANSWERS = 250;
const MAX_CHARS = 1024 * 1024;

/**
 * What the server answers to one request, in its order, in batches of what arrives together. The call ends on both sides
 * with the loop, or with the signal; a client whose server is silent is replaced.
 *
 * @throws the error of the call, or the signal's reason
 */
export async function* answersTo(
  request: ReadReq,
  clients: Clients,
  signal: AbortSignal,
): AsyncGenerator<readonly ReadAnswer[]> {
  signal.throwIfAborted();
  const { client, release } = clients.borrow();
  const answers = new Answers(client.openRead(request));
  const onAbort = (): void => answers.end({ error: signal.reason });
  signal.addEventListener('abort', onAbort);
  try {
    for (let batch = await answers.next(); batch.length > 0; batch = await answers.next()) {
      signal.throwIfAborted();
      yield batch;
    }
  } catch (error) {
    if (error instanceof ServerSilent) clients.replace(client);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    answers.end({});
    release();
  }
}

/** Collects the answers until the reader takes them. */
class Answers {
  #stream: ReadStream | null = null;
  #batch: ReadAnswer[] = [];
  #chars = 0;
  #end: { readonly error?: unknown } | null = null;
  #wake = (): void => undefined;

  constructor(opening: Promise<ReadStream>) {
    opening.then(
      (stream) => this.#listen(stream),
      (error: unknown) => this.end({ error }),
    );
  }

  /** Waits for at least one answer; empty at the end. For a single reader. @throws the error that ended the call */
  async next(): Promise<readonly ReadAnswer[]> {
    while (this.#batch.length === 0) {
      if (this.#end !== null && 'error' in this.#end) throw this.#end.error;
      if (this.#end !== null) return [];
      this.#stream?.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const batch = this.#batch;
    this.#batch = [];
    this.#chars = 0;
    return batch;
  }

  /** Nothing more comes; ends the call if it is open. */
  end(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake();
    if (this.#stream !== null) leave(this.#stream);
  }

  #listen(stream: ReadStream): void {
    this.#stream = stream;
    stream
      .on('error', (error) => this.end({ error }))
      .on('end', () => this.end({}))
      .on('data', (answer: ReadAnswer) => this.#put(answer));
    if (this.#end !== null) leave(stream);
  }

  #put(answer: ReadAnswer): void {
    if (this.#end !== null) return;
    // The reader also takes what arrives in this turn.
    if (this.#batch.push(answer) === 1) setImmediate(() => this.#wake());
    if (answer.kind === 'event') this.#chars += answer.event.data.length;
    if (this.#batch.length >= MAX_ANSWERS || this.#chars >= MAX_CHARS) this.#stream?.pause();
  }
}

function leave(stream: ReadStream): void {
  stream.cancel();
  // The client keeps a call until its answers are read, also those that arrived before it was cancelled.
  stream.resume();
}
