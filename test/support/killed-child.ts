import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { CrashPlan } from './crash-child.js';

const CHILD = fileURLToPath(new URL('./crash-child.js', import.meta.url));

export interface ChildEnd {
  readonly signal: NodeJS.Signals | null;
  readonly code: number | null;
  /** Runs it has accepted. */
  readonly accepted: readonly string[];
}

/** Runs a crash child until it ends, one way or the other. */
export function killedChild(plan: CrashPlan): Promise<ChildEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CHILD, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'inherit'] });
    let told = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (told += text));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const accepted = told.split('\n').filter((line) => line !== '');
      resolve({ code, signal, accepted });
    });
  });
}
