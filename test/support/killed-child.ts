import { fileURLToPath } from 'node:url';
import { startChild } from './child.js';
import type { CrashPlan } from './crash-child.js';

const CHILD = fileURLToPath(new URL('./crash-child.js', import.meta.url));

export interface ChildEnd {
  readonly signal: NodeJS.Signals | null;
  readonly code: number | null;
  /** Ids of the runs that it has accepted. */
  readonly accepted: readonly string[];
}

/** Runs a crash child until it ends or kills itself. */
export async function killedChild(plan: CrashPlan): Promise<ChildEnd> {
  const child = startChild(process.execPath, [CHILD, JSON.stringify(plan)]);
  const { code, signal, stderr } = await child.exit;
  process.stderr.write(stderr);
  return { code, signal, accepted: child.lines };
}
