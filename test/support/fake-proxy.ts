/** An HTTP proxy that passes on plain requests and CONNECT tunnels. */
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { once } from 'node:events';

export interface FakeProxy {
  readonly url: string;
  /** Methods and targets of its requests so far. */
  readonly requests: readonly string[];
  /** Answers CONNECT with this status from now on. */
  refuseTunnels(status: number): void;
  stop(): Promise<void>;
}

export async function fakeProxy(): Promise<FakeProxy> {
  const requests: string[] = [];
  let refusal = 0;
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const { method, headers, url = '' } = request;
    const passed = send(url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  server.on('connect', ({ url = '' }, socket) => {
    requests.push(`CONNECT ${url}`);
    if (refusal > 0) return void socket.end(`HTTP/1.1 ${refusal} No\r\n\r\n`);
    const { hostname, port } = new URL(`http://${url}`);
    const target = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const [each, other] of [[socket, target] as const, [target, socket] as const]) {
      each.on('error', () => undefined).on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    refuseTunnels: (status) => void (refusal = status),
    async stop() {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
}
