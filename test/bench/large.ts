/** What is asked of a very long run and of a very large blueprint. */
import { openDataDirectory } from '../../src/app/data-directory.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { nodeSystem } from '../../src/system/system.js';
import { appendRecord, busyRun, longRun } from '../support/console-records.js';
import type { RunEvent } from '../../src/run/events.js';
import { RUN_ID } from '../support/given.js';
import { tempDir } from '../support/temp-dir.js';
import type { Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { startServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

const EVENTS = 5_000;
const NODES = 200;
const EDGES = 1_000;

/** Issue 17, 3. */
const TARGET = { atMost: 100 };

const ASKED = [
  ...['', '/events', '/events?limit=1000', '/events?from=4000&limit=1000', '/state', '/state?at=2500', '/chart'],
  ...['/prompt?step=400', '/stream?from=4990', '/verify', '/genealogy', '/genealogy?format=mermaid'],
].map((rest) => `/api/runs/${RUN_ID}${rest}`);
const ASKED_OF_BLUEPRINT = ['', '/chart', '/chart?format=mermaid', '/versions'].map(
  (rest) => `/api/councils/large${rest}`,
);

export const largePart: Part = {
  name: 'large',
  method: ({ rounds }) =>
    `Two runs of ${EVENTS} events. BUSY: 500 node executions that call tools eight times each, about the most that the ` +
    'service lets a run do. LONG: 2,500 node executions, so only a fork of forks could come near, and each draft names ' +
    `all feedback before it. And a blueprint of ${NODES} nodes and ${EDGES} edges. Each endpoint is asked ${20 * rounds} ` +
    'times, one after the other, p50.',
  async measure({ rounds }) {
    const busy = await measured({ name: 'BUSY', events: busyRun(EVENTS), asked: ASKED, rounds });
    return [
      ...busy,
      ...(await measured({ name: 'LONG', events: longRun(EVENTS), asked: [...ASKED, ...ASKED_OF_BLUEPRINT], rounds })),
    ];
  },
};

interface Measured {
  readonly name: string;
  readonly events: readonly RunEvent[];
  readonly asked: readonly string[];
  readonly rounds: number;
}

async function measured({ name, events, asked, rounds }: Measured): Promise<readonly Figure[]> {
  const dir = tempDir();
  await fill(dir.path, events);
  const service = await startServiceProcess(dir.path);
  try {
    const body = JSON.stringify(largeBlueprint());
    const headers = { 'Content-Type': 'application/json' };
    const send = async (path: string, init: RequestInit = {}): Promise<void> => {
      const reply = await fetch(service.url + path, init);
      await reply.text();
      if (!reply.ok) throw new Error(`${path} was answered ${reply.status}`);
    };
    await send('/api/councils/', { method: 'POST', headers, body });
    const figures = [];
    for (const path of asked) {
      const times: number[] = [];
      while (times.length < 20 * rounds) {
        const from = performance.now();
        await send(path);
        times.push(performance.now() - from);
      }
      figures.push(figure(path.replace(RUN_ID, name), 'ms', [percentile(times, 0.5)], TARGET));
    }
    return figures;
  } finally {
    await service.stop();
    dir.remove();
  }
}

async function fill(path: string, events: readonly RunEvent[]): Promise<void> {
  const dataDir = openDataDirectory(path, { pid: process.pid, hostname: '', startedAt: nodeSystem().now() });
  const log = await openEmbeddedLog({ file: dataDir.logFile });
  await appendRecord(log, events);
  await log.close();
  dataDir.release();
}

/** Each node leads on to those that come next, as its score decides. */
function largeBlueprint(): object {
  const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `n${index}`, systemPrompt: 'Write.'.repeat(30) }));
  const edges = nodes
    .flatMap(({ id: source }, index) =>
      [1, 2, 3, 4, 5, 6].map((ahead) => ({
        ...{ source, target: `n${index + ahead}`, type: 'conditional', condition: `score < ${ahead}` },
      })),
    )
    .filter(({ target }) => Number(target.slice(1)) < NODES);
  return { id: 'large', name: 'Large', nodes, edges: edges.slice(0, EDGES) };
}
