/** What a paused run costs: memory while it waits, the time to pause and to be approved, and of a start. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/temp-dir.js';
import type { Part } from './figure.js';
import { figure } from './figure.js';
import type { PausedReport } from './paused-process.js';
import { startServiceProcess } from './service-process.js';

const TARGET_START_UP_MS = { atMost: 1_000 };

const CHILD = fileURLToPath(new URL('./paused-process.js', import.meta.url));

export const pausedPart: Part = {
  name: 'paused',
  method: ({ pausedRuns, starts }) =>
    `The engine alone in a process of its own, instant model, ${pausedRuns} God Mode runs of three nodes started by 50 ` +
    `clients: resident memory and heap (after a collection) before and after, all of them paused. To pause is from the ` +
    `start of a run to the acknowledgement of its first pause; to approve from the decision to the acknowledgement that ` +
    `it is recorded and the next node under way. Then all are paused again, and the service is started on them ${starts} times, ` +
    `as for the part history, in turns with starts on an empty folder.`,
  async measure({ pausedRuns, starts }) {
    const [dir, empty] = [tempDir(), tempDir()];
    try {
      const report = await reportOf(dir.path, pausedRuns);
      const runs = pausedRuns.toLocaleString('en-US');
      // The first of each has more to do: what was on its way to its pause, read models.
      for (const { path } of [dir, empty]) await startUpMs(path);
      const [startsMs, emptyMs]: [number[], number[]] = [[], []];
      for (let turn = 0; turn < starts; turn += 1) {
        startsMs.push(await startUpMs(dir.path));
        emptyMs.push(await startUpMs(empty.path));
      }
      return [
        figure('paused: memory before', 'MB', [report.before.residentMb]),
        figure(`paused: memory with ${runs} paused runs`, 'MB', [report.after.residentMb]),
        figure('paused: heap before', 'MB', [report.before.heapMb]),
        figure(`paused: heap with ${runs} paused runs`, 'MB', [report.after.heapMb]),
        figure('paused: to pause, p50', 'ms', [report.pause.p50Ms]),
        figure('paused: to pause, p99', 'ms', [report.pause.p99Ms]),
        figure('paused: to approve, p50', 'ms', [report.approve.p50Ms]),
        figure('paused: to approve, p99', 'ms', [report.approve.p99Ms]),
        figure(`paused: start-up with ${runs} paused runs`, 'ms', startsMs, TARGET_START_UP_MS),
        figure('paused: start-up with none', 'ms', emptyMs),
      ];
    } finally {
      dir.remove();
      empty.remove();
    }
  },
};

async function startUpMs(path: string): Promise<number> {
  const service = await startServiceProcess(path);
  await service.stop();
  return service.startUpMs;
}

async function reportOf(path: string, runs: number): Promise<PausedReport> {
  const child = fork(CHILD, [path, String(runs)], { execArgv: ['--expose-gc'] });
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`The engine's process ended with code ${String(code)} before its report`);
  });
  const message: readonly unknown[] = await Promise.race([once(child, 'message'), failed]);
  failed.catch(() => undefined);
  // Sent by paused-process.ts, which is the only one that is forked here.
  return message[0] as PausedReport;
}
