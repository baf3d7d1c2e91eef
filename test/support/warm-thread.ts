/** A thread that serves one file after the other: see warm-threads.ts. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MessagePort } from 'node:worker_threads';
import { parentPort } from 'node:worker_threads';
import type { Serve } from '../../src/system/thread.js';

/** What to serve next; null: the thread is to end. */
export type WarmTask = { readonly module: string; readonly data: unknown; readonly port: MessagePort } | null;

/** What it tells of the task: that it could not begin, or that all of its files are let go of. */
export type WarmReport = { readonly kind: 'failed'; readonly error: unknown } | { readonly kind: 'free' };

setFlagsFromString('--expose-gc');
setFlagsFromString('--allow-natives-syntax');
/** Of all that has died: what another thread optimizes at the moment would keep alive what it uses, so that ends first. */
const collectGarbage = runInNewContext('() => { %FinalizeOptimization(); gc(); }') as () => void;

/**
 * pdfjs warns of what is hidden from it, and pdf2json tells of what it cannot read. Kept from the screen by a stream, their
 * words would keep the process alive.
 */
for (const name of ['log', 'warn', 'error'] as const) console[name] = () => undefined;

const report = (message: WarmReport): void => parentPort?.postMessage(message);

parentPort?.on('message', (task: WarmTask) => {
  if (task === null) parentPort?.close();
  else void serve(task);
});

async function serve({ module, data, port }: Exclude<WarmTask, null>): Promise<void> {
  port.once('close', letGo);
  try {
    const loaded = (await import(module)) as { readonly serve: Serve<unknown> };
    loaded.serve(port, data);
  } catch (error) {
    report({ kind: 'failed', error });
    port.close();
  }
}

/** As the end of a thread does: a prepared statement that is not collected keeps its file open past the closing. */
function letGo(): void {
  // Not in the turn in which the port is still held by the one who calls.
  setImmediate(() => {
    collectGarbage();
    // What is collected is freed in the turn after.
    setImmediate(() => setImmediate(() => report({ kind: 'free' })));
  });
}
