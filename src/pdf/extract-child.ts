/**
 * The program of the extraction child: reads a PDF from standard input, parses it in a thread, writes the text to
 * descriptor 3 and exits. The main thread checks the limits, because a parser may block its thread and use memory outside
 * the heap, which no flag limits. The process ends with its parent and with the thread.
 */
import { elementAt } from '../system/element.js';
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { MESSAGE_FD, type ChildMessage, type ChildOptions } from './child-protocol.js';
import type { ParserTask } from './parser-thread.js';

/** Interval of the checks of memory, processor time and parent, in milliseconds. */
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
  thread.on('exit', () => sendLast({ kind: 'failed', reason: 'The parser ended without a result' }));
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

/** Kills the process: a normal exit would wait for a thread that may block. */
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

/** The whole input in a transferable buffer of exactly its size. `readFileSync(0)` fails on a large pipe. */
async function standardInput(): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Buffer[] = [];
  const input: AsyncIterable<Buffer> = process.stdin;
  for await (const part of input) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}
