/**
 * The program of the extraction child: reads a PDF from standard input, has a thread parse it, writes the text to
 * descriptor 3 and exits. The main thread stays free to watch limits: a parser may never yield, and uses memory outside
 * the heap that no flag bounds. The process ends with its parent and with the thread in any case.
 */
import { elementAt } from '../system/element.js';
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { MESSAGE_FD, type ChildMessage, type ChildOptions } from './child-protocol.js';
import type { ParserTask } from './parser-thread.js';

/** Milliseconds between two checks of memory, processor time and parent. */
const CHECK_EVERY_MS = 20;

const options = JSON.parse(elementAt(process.argv, 2)) as ChildOptions;

setInterval(() => {
  if (process.memoryUsage.rss() > options.maxMemoryBytes) sendLast({ kind: 'out-of-memory' });
  if (processorMs() > options.maxProcessorMs) sendLast({ kind: 'timed-out' });
  if (process.ppid !== options.parentPid) end();
}, CHECK_EVERY_MS);

startParser(await standardInput());

/** Processor time of all threads since the process started, in milliseconds. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function startParser(bytes: Uint8Array<ArrayBuffer>): void {
  const thread = new Worker(new URL('./parser-thread.js', import.meta.url), {
    workerData: { options, bytes } satisfies ParserTask,
    transferList: [bytes.buffer],
    resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMb },
    env: {},
  });
  thread.on('message', (message: ChildMessage) => (message.kind === 'page' ? send(message) : sendLast(message)));
  thread.on('error', (error: unknown) => sendLast(fault(error)));
  thread.on('exit', () => sendLast({ kind: 'failed', reason: 'The parser ended without a word' }));
}

function fault(error: unknown): ChildMessage {
  const isMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
  if (isMemory) return { kind: 'out-of-memory' };
  return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
}

function sendLast(message: ChildMessage): never {
  send(message);
  end();
}

/** Kills the process at once: a normal exit would wait for a thread that never yields. */
function end(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('Killed');
}

/** Blocks until the message is written to the pipe. */
function send(message: ChildMessage): void {
  const line = Buffer.from(`${JSON.stringify(message)}\n`);
  try {
    for (let from = 0; from < line.length;) from += writeSync(MESSAGE_FD, line, from);
  } catch {
    // The parent has closed the pipe.
    end();
  }
}

/** All input, in a buffer of exactly its size, to be transferred. `readFileSync(0)` fails on a large pipe. */
async function standardInput(): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Buffer[] = [];
  const input: AsyncIterable<Buffer> = process.stdin;
  for await (const part of input) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}
