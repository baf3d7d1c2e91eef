/** Clients of two runs' sockets and event streams, in a process of their own: some never read. */
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';

/** What the process that forked this one asks for. */
export interface CrowdOrder {
  readonly url: string;
  /** Watched on channels. */
  readonly quiet: string;
  /** Watched in full. */
  readonly loud: string;
  /** By what they open. */
  readonly clients: Readonly<Record<'channel' | 'rich' | 'stream', number>>;
  /** Of the rich ones, how many read nothing until they are asked whether they were closed. */
  readonly stalled: number;
}

/** What it is told: all are open; the readers have seen the end; how the stalled ones were closed. */
export type CrowdReport =
  | { readonly kind: 'open'; readonly refused: number }
  | {
      readonly kind: 'told';
      readonly quietMs: readonly number[];
      readonly loudMs: readonly number[];
      readonly unclean: number;
    }
  | { readonly kind: 'closed'; readonly codes: Readonly<Record<string, number>> };

/** Openings under way at once. */
const OPENING = 50;

const [, , text = ''] = process.argv;
// Written by crowd.ts, which is the only one to start this.
const { url, quiet, loud, clients, stalled } = JSON.parse(text) as CrowdOrder;
const agent = new Agent({ keepAlive: false, maxSockets: Infinity });
const readers: { readonly isQuiet: boolean; readonly told: Promise<number | null> }[] = [];
const idle: { readonly socket: WebSocket; readonly closed: Promise<number> }[] = [];
let refused = 0;

const openings: (() => Promise<void>)[] = [
  ...Array.from({ length: clients.channel }, () => () => openSocket(quiet, false)),
  ...Array.from({ length: clients.rich }, (_, index) => () => openSocket(`${loud}?events=all`, index < stalled)),
  ...Array.from({ length: clients.stream }, () => openStream),
];
await Promise.all(
  Array.from({ length: OPENING }, async () => {
    for (let open = openings.pop(); open !== undefined; open = openings.pop()) await open();
  }),
);
report({ kind: 'open', refused });

const told = await Promise.all(readers.map(async (each) => ({ ...each, told: await each.told })));
const timesOf = (isQuiet: boolean): readonly number[] =>
  told.flatMap((each) => (each.isQuiet === isQuiet && each.told !== null ? [each.told] : []));
const [quietMs, loudMs] = [timesOf(true), timesOf(false)];
report({ kind: 'told', quietMs, loudMs, unclean: told.length - quietMs.length - loudMs.length });

process.once('message', () => void closeIdle());

async function closeIdle(): Promise<void> {
  for (const { socket } of idle) socket.resume();
  const codes: Record<string, number> = {};
  for (const { closed } of idle) {
    const code = await closed;
    codes[code] = (codes[code] ?? 0) + 1;
  }
  report({ kind: 'closed', codes });
  process.disconnect();
  agent.destroy();
}

function openSocket(path: string, isStalled: boolean): Promise<void> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws/council/${path}`);
  socket.on('error', () => (refused += 1));
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  if (isStalled) idle.push({ socket, closed });
  else readers.push({ isQuiet: path === quiet, told: endOf(socket) });
  return new Promise((resolve) => {
    socket.once('open', () => {
      if (isStalled) socket.pause();
      resolve();
    });
    socket.once('close', () => resolve());
  });
}

/** When a socket was told of the end; null: it was closed before. */
function endOf(socket: WebSocket): Promise<number | null> {
  return new Promise((resolve) => {
    socket.on('message', (data: Buffer) => {
      if (data.subarray(0, 64).includes('"run_complete"')) resolve(Date.now());
    });
    socket.once('close', () => resolve(null));
  });
}

function openStream(): Promise<void> {
  return new Promise((resolve) => {
    const asked = request(`${url}/api/runs/${loud}/stream`, { agent }, (response) => {
      if (response.statusCode !== 200) refused += 1;
      readers.push({ isQuiet: false, told: endOfStream(response) });
      resolve();
    });
    asked.on('error', () => {
      refused += 1;
      resolve();
    });
    asked.end();
  });
}

function endOfStream(response: IncomingMessage): Promise<number | null> {
  return new Promise((resolve) => {
    response.on('data', (chunk: Buffer) => {
      if (chunk.includes('event: RunCompleted')) resolve(Date.now());
    });
    response.on('error', () => resolve(null));
    response.once('close', () => resolve(null));
  });
}

function report(told: CrowdReport): void {
  process.send?.(told);
}
