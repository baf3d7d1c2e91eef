/** How long an event takes from the log to who follows its run over server-sent events, in logs of any size. */
import { Agent, get } from 'node:http';
import { instantModel } from '../support/instant-model.js';
import { tempDir } from '../support/temp-dir.js';
import { openBenchService } from './bench-service.js';
import { copiedRuns } from './copied-runs.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { exchange, textIn } from './rest-clients.js';
import { percentile } from './statistics.js';

export const streamPart: Part = {
  name: 'stream',
  method: ({ requests }) =>
    `The real service with the instant model on logs of finished runs; ${requests} runs one after the other, each followed ` +
    `at \`/stream\` from before its first answer to its end, then asked for again as a whole. Service and client share one ` +
    `process and its clock. Latency is from the acknowledgement of the append by the log to the arrival of its event.`,
  async measure(effort) {
    const figures: Figure[] = [];
    for (const runs of effort.historyRuns) figures.push(...(await figuresAt(runs, effort)));
    return figures;
  },
};

async function figuresAt(runs: number, { requests }: Effort): Promise<readonly Figure[]> {
  const dir = tempDir();
  await copiedRuns(dir.path, { model: instantModel(), runs });
  const acknowledgedMs = new Map<string, number>();
  const model = instantModel();
  let open: () => void = () => undefined;
  let isOpen = Promise.resolve();
  const service = await openBenchService({
    path: dir.path,
    model: {
      ...model,
      ask: async (request, call) => {
        await isOpen;
        return await model.ask(request, call);
      },
    },
    onAppended: (_stream, events) => {
      for (const { id } of events) acknowledgedMs.set(id, performance.now());
    },
  });
  const agent = new Agent({ keepAlive: true });
  const [latenciesMs, wholeMs]: [number[], number[]] = [[], []];
  try {
    for (let index = 0; index < requests; index += 1) {
      isOpen = new Promise((resolve) => (open = resolve));
      const start = await exchange(agent, `${service.url}/api/councils/run`, `{"input_topic":"Topic ${index}"}`);
      const url = `${service.url}/api/runs/${textIn(start, 'run_id')}/stream`;
      let liveFromMs = Number.POSITIVE_INFINITY;
      const arrivals = await followed(url, () => {
        liveFromMs = Math.min(liveFromMs, performance.now());
        open();
      });
      for (const { id, atMs } of arrivals) {
        const appendedMs = acknowledgedMs.get(id) ?? Number.NaN;
        if (appendedMs > liveFromMs) latenciesMs.push(atMs - appendedMs);
      }
      const from = performance.now();
      const again = await followed(url, () => undefined);
      wholeMs.push(performance.now() - from);
      if (again.length !== arrivals.length) throw new Error(`${again.length} events came where ${arrivals.length} had`);
      acknowledgedMs.clear();
    }
  } finally {
    agent.destroy();
    await service.stop();
    dir.remove();
  }
  const having = `with ${runs.toLocaleString('en-US')} finished runs:`;
  return [
    figure(`${having} append to event stream, p50`, 'ms', [percentile(latenciesMs, 0.5)]),
    figure(`${having} append to event stream, p99`, 'ms', [percentile(latenciesMs, 0.99)]),
    figure(`${having} a finished run's whole stream, p50`, 'ms', [percentile(wholeMs, 0.5)]),
  ];
}

interface Arrival {
  readonly id: string;
  readonly atMs: number;
}

/** When each event of a stream came, to its end. `onFirstNode` is called when the first node has been started. */
function followed(url: string, onFirstNode: () => void): Promise<readonly Arrival[]> {
  return new Promise((resolve, reject) => {
    const arrivals: Arrival[] = [];
    const request = get(url, (response) => {
      let rest = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const atMs = performance.now();
        const blocks = (rest + chunk).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (data !== undefined) arrivals.push({ id: textIn(JSON.parse(data), 'id'), atMs });
          if (block.includes('\nevent: NodeStarted\n')) onFirstNode();
        }
      });
      response.on('end', () => resolve(arrivals)).on('error', reject);
    });
    request.on('error', reject);
  });
}
