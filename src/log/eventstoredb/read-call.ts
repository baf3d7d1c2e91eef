/** One read call to the server and the answers it gives. */
import type { Connection } from './connection.js';
import type { ReadAnswer, ReadRequest } from './wire.js';
import { read } from './wire.js';

/** Why a call is ended whose server says nothing. */
export class ServerSilent extends Error {
  constructor(deadlineMs: number) {
    super(`The server said nothing for ${deadlineMs} ms`);
  }
}

/**
 * Asks and gives the answers as they come; what is not taken yet waits at the server, but for what fits the sockets.
 * Leaving the loop ends the call on both sides. Throws the call's error, or the signal's reason; the connection has
 * heard of it then.
 */
export async function* answersTo(
  request: ReadRequest,
  connection: Connection,
  signal: AbortSignal,
): AsyncGenerator<ReadAnswer> {
  signal.throwIfAborted();
  const route = await orAborted(connection.route(), signal);
  const call = connection.begin(route, (streams, metadata, options) => read(streams, request, { metadata, options }));
  const leave = (): void => call.cancel();
  signal.addEventListener('abort', leave);
  try {
    yield* call as AsyncIterable<ReadAnswer>;
  } catch (error) {
    if (signal.reason instanceof ServerSilent) connection.replace(route.client);
    signal.throwIfAborted();
    connection.failed(route, error);
    throw error;
  } finally {
    signal.removeEventListener('abort', leave);
    call.cancel();
  }
}

/** The signal must not have come before: nobody would hear of the promise then. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(new Error('The call was left', { cause: signal.reason }));
  });
  signal.addEventListener('abort', leave);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
