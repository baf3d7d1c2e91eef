/** A proxy between a client and a service, which forwards a request or spoils it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';

/**
 * `lose`: the service acts, its answer does not arrive. `refuse` and `doubt`: 503, the service gets nothing; `doubt` says
 * that the request may have taken effect. `hang`: neither request nor answer arrives.
 */
export type Fate = 'pass' | 'lose' | 'refuse' | 'doubt' | 'hang';

const REFUSALS = {
  refuse: { detail: 'Not now' },
  doubt: { detail: 'Not now', code: 'outcome_unknown' },
} as const;

export interface SpoiltService {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  stop(): Promise<void>;
}

export async function spoiltService(
  target: string,
  fateOf: (request: IncomingMessage) => Fate,
): Promise<SpoiltService> {
  const server = createServer((asked, answer) => {
    const fate = fateOf(asked);
    if (fate === 'hang') return;
    if (fate === 'refuse' || fate === 'doubt') {
      answer.writeHead(503, { 'Content-Type': 'application/json' }).end(JSON.stringify(REFUSALS[fate]));
    } else pass(target, asked, { answer, isLost: fate === 'lose' });
  });
  server.on('upgrade', (asked, socket: Socket) => joinSockets(target, asked, socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Passing {
  readonly answer: ServerResponse;
  readonly isLost: boolean;
}

function pass(target: string, asked: IncomingMessage, { answer, isLost }: Passing): void {
  const { method = 'GET', headers, url = '/' } = asked;
  const passed = request(target + url, { method, headers }, (reply) => {
    if (isLost) return void asked.socket.destroy();
    answer.writeHead(reply.statusCode ?? 500, reply.headers);
    reply.pipe(answer);
  });
  asked.pipe(passed);
}

function joinSockets(target: string, { method = 'GET', url = '/', rawHeaders }: IncomingMessage, socket: Socket): void {
  const { hostname, port } = new URL(target);
  const service = connect(Number(port), hostname, () => {
    const headers = rawHeaders.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
    service.write(`${method} ${url} HTTP/1.1\r\n${headers}\r\n`);
    service.pipe(socket).pipe(service);
  });
  service.on('error', () => socket.destroy());
  socket.on('error', () => service.destroy());
}
