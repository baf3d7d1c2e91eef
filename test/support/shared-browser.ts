/** One browser for all blocks of a process: to launch it costs two seconds of a processor. */
import { createRequire } from 'node:module';
import type * as Playwright from 'playwright-core';
import type { Browser } from 'playwright-core';

/** Required: to import it, Node reads all of it once more for the names it may export, a third of a second. */
const { chromium } = createRequire(import.meta.url)('playwright-core') as typeof Playwright;

/** It is closed when no block has begun for so long, lest it keep the process alive. */
const IDLE_MS = 2_000;

let launched: Promise<Browser> | null = null;
let closing: NodeJS.Timeout | undefined;

/** The browser; whoever takes it gives it back. @param executablePath of Chromium */
export function takeBrowser(executablePath: string): Promise<Browser> {
  clearTimeout(closing);
  // The runner's own time limit is the only one: a busy machine takes its time.
  launched ??= chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer'],
    timeout: 0,
  });
  return launched;
}

/** Blocks run one after the other, so nobody else has it. */
export function giveBrowserBack(): void {
  // Of several processes side by side each has more blocks to come, and closes it with its own end.
  if (process.env['MOCHA_WORKER_ID'] !== undefined) return;
  closing = setTimeout(() => {
    void launched?.then((browser) => browser.close());
    launched = null;
  }, IDLE_MS);
}
