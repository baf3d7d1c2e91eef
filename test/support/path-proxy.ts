/** Proxies that show a service below a path, by Node and by nginx; each removes the path from requests, or keeps it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer, request as requestOf } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { tempDir } from './temp-dir.js';
import { untilTrue } from './until-true.js';

export interface PathProxy {
  /** URL of the service through the proxy, with the path. */
  readonly url: string;
  close(): Promise<void>;
}

export interface PathProxyOptions {
  readonly serviceUrl: string;
  /** Such as `/council`. */
  readonly path: string;
  readonly removesPath: boolean;
}

interface PathProxyKind {
  readonly title: string;
  readonly removesPath: boolean;
  /** Null if its program is not installed. */
  readonly open: ((options: PathProxyOptions) => Promise<PathProxy>) | null;
}

const NGINX = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find((file) => existsSync(file)) ?? null;

/** Title of the pending test without nginx. */
export const NO_NGINX = 'needs nginx in /usr/sbin, /usr/bin or /usr/local/sbin';

export const PATH_PROXIES: readonly PathProxyKind[] = [true, false].flatMap((removesPath) => {
  const what = removesPath ? 'removes the path' : 'keeps the path';
  const nginx = NGINX === null ? null : (options: PathProxyOptions) => openNginx(NGINX, options);
  return [
    { title: `a proxy that ${what}`, removesPath, open: openNodeProxy },
    { title: `an nginx that ${what}`, removesPath, open: nginx },
  ];
});

/** Answers paths outside of the path with 404, as another service of the same server would. */
async function openNodeProxy({ serviceUrl, path, removesPath }: PathProxyOptions): Promise<PathProxy> {
  const { hostname, port } = new URL(serviceUrl);
  const open = new Set<Socket>();
  const targetOf = ({ url = '' }: IncomingMessage): string | null => {
    if (!url.startsWith(`${path}/`)) return null;
    return removesPath ? url.slice(path.length) : url;
  };
  const server = createServer((request, response) => {
    const target = targetOf(request);
    if (target === null) return void response.writeHead(404).end();
    const { method, headers } = request;
    const passed = requestOf({ hostname, port, path: target, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const target = targetOf(request);
    if (target === null) return void socket.destroy();
    const service = connect(Number(port), hostname);
    for (const [one, other] of [
      [socket, service],
      [service, socket],
    ] as const) {
      open.add(one);
      one.on('error', () => undefined).on('close', () => (open.delete(one), other.destroy()));
      one.pipe(other);
    }
    const fields = request.rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
    service.write(`GET ${target} HTTP/1.1\r\n${fields}\r\n`);
    service.write(head);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    async close() {
      server.close();
      server.closeAllConnections();
      open.forEach((socket) => socket.destroy());
      await once(server, 'close');
    },
  };
}

/** nginx with the lines that the README shows. */
async function openNginx(program: string, { serviceUrl, path, removesPath }: PathProxyOptions): Promise<PathProxy> {
  const dir = tempDir();
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const file = join(dir.path, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off;
    master_process off;
    pid ${join(dir.path, 'nginx.pid')};
    error_log stderr error;
    events {}
    http {
      access_log off;
      ${temporary.map((name) => `${name}_temp_path ${join(dir.path, name)};`).join(' ')}
      server {
        listen 127.0.0.1:${port};
        location ${path}/ {
          proxy_pass ${serviceUrl}${removesPath ? '/' : ''};
          proxy_http_version 1.1;
          proxy_set_header Host $http_host;
          proxy_set_header X-Forwarded-For $remote_addr;
          proxy_set_header X-Forwarded-Proto $scheme;
          proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $http_connection;
          proxy_buffering off;
          proxy_read_timeout 75s;
          client_max_body_size 51m;
        }
      }
    }`,
  );
  const child = spawn(program, ['-c', file, '-p', dir.path], { stdio: ['ignore', 'ignore', 'pipe'] });
  let faults = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (faults += text));
  const closed = once(child, 'close');
  await untilTrue(async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}: ${faults}`);
    return await accepts(port);
  });
  return {
    url: `http://127.0.0.1:${port}${path}`,
    async close() {
      child.kill('SIGTERM');
      await closed;
      dir.remove();
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)));
    socket.on('error', () => resolve(false));
  });
}
