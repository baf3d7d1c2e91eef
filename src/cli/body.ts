/** Long answers of a service, piece by piece as they come. */
import type { Ambient } from '../ambient.js';
import { refusalOf, ServiceUnreachable } from './rest.js';

/** Silence after which nobody is taken to be there any more, in milliseconds: streams of the service are never still for long. */
const SILENCE_MS = 60_000;

export interface Asking {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ambient: Pick<Ambient, 'after'>;
  /** Gives it up. */
  readonly signal: AbortSignal;
}

/**
 * The body of an answer to GET; null when the service answers that there is none (204).
 *
 * @param url of the service, without trailing slash
 * @throws {ServiceRefused} for any answer but a 2xx @throws {ServiceUnreachable} when there is none, or, from the
 *   iteration, when it breaks off
 */
export async function openBody(url: string, asking: Asking): Promise<AsyncGenerator<Uint8Array> | null> {
  const given = new AbortController();
  const signal = AbortSignal.any([asking.signal, given.signal]);
  /** Waits for what a service owes, and not for ever. */
  const owed = async <T>(act: () => Promise<T>): Promise<T> => {
    const disarm = asking.ambient.after(SILENCE_MS, () => given.abort());
    try {
      return await act();
    } catch (error) {
      throw new ServiceUnreachable(url, error);
    } finally {
      disarm();
    }
  };
  const { path, headers } = asking;
  const answer = await owed(() => fetch(url + path, { headers, redirect: 'manual', signal }));
  if (answer.status === 204) return null;
  if (!answer.ok) {
    throw refusalOf({ status: answer.status, text: await owed(() => answer.text()) }, `GET ${url}${path}`);
  }
  return pieces(answer, { owed, leave: () => given.abort() });
}

interface Reading {
  readonly owed: <T>(act: () => Promise<T>) => Promise<T>;
  readonly leave: () => void;
}

async function* pieces({ body }: Response, { owed, leave }: Reading): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (let piece = await owed(() => reader.read()); !piece.done; piece = await owed(() => reader.read())) {
      yield piece.value;
    }
  } finally {
    leave();
  }
}
