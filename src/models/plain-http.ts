/**
 * Finds out that the server behind an `https://` address speaks plain HTTP. Such a server may close the connection or
 * say nothing when it is greeted in TLS, which would be taken for an outage.
 */
import { connect, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { fieldOf } from '../system/untrusted.js';
import { callAborted } from './port.js';
import { orAborted } from '../system/async/deadline.js';
import { plainHttpHint } from './failed-exchange.js';

/** How long a server may be silent in the TLS handshake until it is asked in plain HTTP, in milliseconds. */
const HANDSHAKE_MS = 2_500;
/** How long it may take to answer that, in milliseconds; both together stay below 5 s. */
const ANSWER_MS = 2_400;

export interface PlainHttpGuardOptions {
  readonly baseUrl: string;
  /** The setting that holds it. */
  readonly setting: string;
  readonly system: Pick<System, 'after'>;
}

/** Makes a call unless its server speaks plain HTTP only. */
export type Guard = <T>(call: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/**
 * A guard that lets calls fail with `tls_failed`, not retryable, within 5 s when their server speaks plain HTTP only. It
 * greets the server before each call until TLS was seen to work once; it sends no request and no key.
 */
export function plainHttpGuard({ baseUrl, setting, system }: PlainHttpGuardOptions): Guard {
  const { protocol, hostname, port } = new URL(baseUrl);
  const at = { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 443 : Number(port) };
  let hasTls = protocol !== 'https:';
  /** One for all calls that wait. Before the call, not beside it: some servers serve one connection at a time. */
  let probe: Promise<boolean> | null = null;

  /** Whether plain HTTP is all that is spoken. */
  const isPlain = async (): Promise<boolean> => {
    const greeting = await handshake(at, system);
    hasTls ||= greeting === 'secure';
    return greeting === 'unanswered' && (await answersPlainHttp(at, system));
  };
  const failure = new ModelFailed(
    `Cannot use ${at.host}:${at.port}: no TLS connection came about${plainHttpHint(setting)}`,
    { kind: 'tls_failed', retryable: false },
  );

  return async (call, signal) => {
    if (!hasTls) {
      const probing = (probe ??= isPlain().finally(() => (probe = null)));
      if (await orAborted(probing, signal, callAborted)) throw failure;
    }
    const answer = await call();
    hasTls = true;
    return answer;
  };
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Not 400, 426 or 3xx: TLS servers also answer plain HTTP with these. */
const PLAIN_ANSWER = /^HTTP\/1\.[01] (?!400|426|3\d\d)/;

/** How the server takes the beginning of TLS; `unanswered`: it says nothing or closes the connection. */
function handshake(
  { host, port }: Endpoint,
  system: Pick<System, 'after'>,
): Promise<'secure' | 'unanswered' | 'failed'> {
  return new Promise((resolve) => {
    // The certificate is for the call itself to judge: nothing is sent here.
    const socket = connectTls({ host, port, rejectUnauthorized: false, ...(isIP(host) === 0 && { servername: host }) });
    let isConnected = false;
    const end = (outcome: 'secure' | 'unanswered' | 'failed'): void => {
      cancel();
      socket.destroy();
      resolve(outcome);
    };
    const cancel = system.after(HANDSHAKE_MS, () => end(isConnected ? 'unanswered' : 'failed'));
    socket.on('connect', () => (isConnected = true));
    socket.on('secureConnect', () => end('secure'));
    socket.on('error', (error) =>
      end(isConnected && fieldOf(error, 'code') === 'ECONNRESET' ? 'unanswered' : 'failed'),
    );
    socket.on('close', () => end('failed'));
  });
}

function answersPlainHttp({ host, port }: Endpoint, system: Pick<System, 'after'>): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (isHttp: boolean): void => {
      cancel();
      socket.destroy();
      resolve(isHttp);
    };
    const cancel = system.after(ANSWER_MS, () => end(false));
    socket.on('connect', () => socket.write(`HEAD / HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`));
    socket.on('data', (bytes) => end(PLAIN_ANSWER.test(bytes.toString('latin1'))));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
  });
}
