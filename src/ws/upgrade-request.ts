/** The request of an upgrade: its target, the checks before its key, and refusals as plain HTTP answers. */
import type { Problem } from '../generated/schemas.js';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ProblemForm } from '../api/problem-form.js';
import { partsOfTarget, problemAt } from '../api/problem-form.js';
import { rawAnswer } from '../api/raw-answer.js';
import type { SourceRules } from '../api/access/request-source.js';
import { refusedHost, refusedPage } from '../api/access/request-source.js';

/** The connection of an upgrade, and the bytes read after the request. */
export interface Connection {
  readonly socket: Duplex;
  readonly head: Buffer;
}

export type UpgradeTarget =
  | { readonly stream: 'default'; readonly runId: string }
  /** The rich stream's events with a revision above `after`; -1 means all. */
  | { readonly stream: 'all'; readonly runId: string; readonly after: number }
  /**
   * The rich stream with an invalid `from`. The service refuses it, because a guessed value would skip or repeat
   * events.
   */
  | { readonly stream: 'invalid'; readonly detail: string };

/** The channel that an upgrade asks for, or null after refusing the upgrade or serving it as an ordinary request. */
export function targetOf(
  request: IncomingMessage,
  { socket, head }: Connection,
  { server, problemForms, ...rules }: TargetRules & { readonly server: Server },
): UpgradeTarget | null {
  if (!isToSocket(request)) {
    serveWithoutUpgrade(server, request, { socket, head });
    return null;
  }
  socket.on('error', () => socket.destroy());
  const parts = partsOfTarget(request.url ?? '');
  const target = parseTarget(parts);
  const refusal =
    target === null
      ? { status: 404, detail: 'No such channel' }
      : (refusedMethod(request) ?? refusedSource(request, rules));
  if (refusal === null) return target;
  refuse(socket, refusal, { path: parts.path, problemForms });
  return null;
}

/** What decides whether an upgrade is refused, and the form of the refusal. */
export interface TargetRules extends SourceRules {
  readonly problemForms: readonly ProblemForm[];
}

export interface UpgradeRefusal {
  readonly status: number;
  readonly detail: string;
  readonly erased?: Problem['erased'];
  readonly headers?: Readonly<Record<string, string>>;
}

/** Refuses an upgrade; of a channel in the form of this service. */
export function refuse(
  socket: Duplex,
  { status, detail, erased, headers = {} }: UpgradeRefusal,
  { path, problemForms }: { readonly path: string } & Pick<TargetRules, 'problemForms'> = OF_CHANNELS,
): void {
  // Node does not watch an upgraded connection. Without this, a peer that never ends its side would keep it open
  // forever.
  socket.once('finish', () => socket.destroy());
  socket.end(
    rawAnswer(problemAt(path, { status, body: { detail, ...(erased && { erased }) }, headers }, problemForms)),
  );
}

const OF_CHANNELS = { path: '', problemForms: [] };

function isToSocket({ headers: { upgrade = '' } }: IncomingMessage): boolean {
  return upgrade.split(',').some((each) => each.trim().toLowerCase() === 'websocket');
}

function refusedMethod({ method }: IncomingMessage): UpgradeRefusal | null {
  if (method === 'GET') return null;
  return { status: 405, detail: `Method ${method} is not allowed here; use GET`, headers: { Allow: 'GET' } };
}

/** HTTP/1.1 requires exactly one Host (RFC 9112, section 3.2); Node checks that for ordinary requests only. */
function refusedSource(request: IncomingMessage, rules: SourceRules): UpgradeRefusal | null {
  const hosts = request.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
  if (hosts.length !== 1) return { status: 400, detail: 'A request must have one Host header' };
  return refusedHost(request, rules) ?? refusedPage(request, rules);
}

/**
 * Serves a request as if it offered no upgrade (RFC 9110, section 7.8): some clients offer HTTP/2 with every request.
 * Node no longer reads the connection, so the service has it parsed again.
 */
function serveWithoutUpgrade(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  { socket, head }: Connection,
): void {
  const fields = rawHeaders.flatMap((name, at) => {
    if (at % 2 === 1 || /^(upgrade|http2-settings)$/i.test(name)) return [];
    const value = rawHeaders[at + 1] ?? '';
    return [`${name}: ${/^connection$/i.test(name) ? withoutOffer(value) : value}\r\n`];
  });
  const start = `${method} ${url} HTTP/${httpVersion}\r\n${fields.join('')}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(start, 'latin1'), head]));
  server.emit('connection', socket);
}

function withoutOffer(connection: string): string {
  const options = connection.split(',').map((each) => each.trim());
  return options.filter((each) => !/^(upgrade|http2-settings)$/i.test(each)).join(', ');
}

/** The target, or null if no channel has this address. The default stream ignores its query. */
function parseTarget({ path, query }: ReturnType<typeof partsOfTarget>): UpgradeTarget | null {
  const found = /^\/ws\/council\/([^/]+)\/?$/.exec(path)?.[1];
  if (found === undefined) return null;
  const runId = decoded(found);
  const parameters = new URLSearchParams(query);
  if (!parameters.getAll('events').includes('all')) return { stream: 'default', runId };
  const after = afterIn(parameters.getAll('from'));
  if (after === null) return { stream: 'invalid', detail: 'from: Input should be one whole number of at least -1' };
  return { stream: 'all', runId, after };
}

function afterIn(texts: readonly string[]): number | null {
  if (texts.length === 0) return -1;
  const [text = ''] = texts;
  const after = Number(text);
  return texts.length === 1 && /^(-1|[0-9]+)$/.test(text) && Number.isSafeInteger(after) ? after : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
