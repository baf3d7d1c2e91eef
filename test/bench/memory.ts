/** Memory of the service, before and after many runs. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { tempDir } from '../support/temp-dir.js';
import { bounded } from './closed-loop.js';
import type { Figure, Part, Target } from './figure.js';
import { figure, unmeasured } from './figure.js';
import { residentMb } from './machine.js';
import { restLoad } from './rest-clients.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';

const PROBE = new URL('../support/memory-probe.js', import.meta.url).href;

/** Time after the last run in which background work can end. */
const REST_MS = 2_000;
/** Time after the ready line until the service counts as idle: V8 frees the memory of the start some 8 s later. */
const IDLE_MS = 20_000;

const CLIENTS = 50;
const POLL_MS = 25;

const TARGET_IDLE = { atMost: 110 };

export const memoryPart: Part = {
  name: 'memory',
  method: ({ memoryRuns, fillSeconds }) =>
    `dist/src/main.js with the flags of \`npm start\`, offline model, default settings, in a process of its own: resident ` +
    `memory ${IDLE_MS / 1_000} s after its ready line (idle), and ${REST_MS / 1_000} s after ${memoryRuns} runs (or as many ` +
    `as ${fillSeconds} s allow) by ${CLIENTS} polling REST clients. The heap is the main thread's after a collection.`,
  async measure({ memoryRuns, fillSeconds }) {
    const dir = tempDir();
    const service = await startServiceProcess(dir.path, { flags: ['--expose-gc', '--import', PROBE] });
    try {
      const idle = await memoryOf(service, 'when idle', { restMs: IDLE_MS, target: TARGET_IDLE });
      const goesOn = bounded({ seconds: fillSeconds, acts: memoryRuns });
      const { acts } = await restLoad({ url: service.url, clients: CLIENTS, pollMs: POLL_MS, goesOn });
      const after = await memoryOf(service, `after ${acts.toLocaleString('en-US')} finished runs`, { restMs: REST_MS });
      return [...idle, ...after, resident('memory at its peak', residentMb(service.pid, 'VmHWM'))];
    } finally {
      await service.stop();
      dir.remove();
    }
  },
};

async function memoryOf(
  service: ServiceProcess,
  when: string,
  { restMs, target }: { readonly restMs: number; readonly target?: Target },
): Promise<readonly Figure[]> {
  await delay(restMs);
  return [
    resident(`memory ${when}`, residentMb(service.pid, 'VmRSS'), target),
    figure(`heap ${when}`, 'MB', [(await heapBytes(service)) / 1e6]),
  ];
}

function resident(name: string, valueMb: number | null, target?: Target): Figure {
  if (valueMb === null) return unmeasured(name, 'MB', 'this system has no /proc');
  return figure(name, 'MB', [valueMb], target);
}

async function heapBytes({ child }: ServiceProcess): Promise<number> {
  const answered = once(child, 'message');
  child.send('heap');
  const answer: readonly unknown[] = await answered;
  return Number(answer[0]);
}
