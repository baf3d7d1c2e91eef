/** How long runs stand still when their instance is stopped: from the signal until another one runs all of them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { EventLog } from '../../src/eventlog/port.js';
import { tempDir } from '../support/temp-dir.js';
import { closedLoop } from './closed-loop.js';
import { startServiceProcess } from './service-process.js';

const STARTERS = 20;
/** Longest wait for the last claim, in milliseconds. */
const PATIENCE_MS = 60_000;

export interface Handover {
  readonly runs: number;
  /** What both instances are told: their log. */
  readonly environment: Readonly<Record<string, string>>;
  /** The log they share, read from here; closed in the end. */
  readonly log: EventLog;
}

/** Milliseconds from SIGTERM to the last claim. The runs wait for a model that never answers. */
export async function handoverMs({ runs, environment, log }: Handover): Promise<number> {
  const dir = tempDir();
  const model = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(model, 'listening');
  const origin = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
  const settings = { environment: { ...environment, GEMINI_API_KEY: 'none', GEMINI_BASE_URL: origin } };
  const [leaving, staying] = await Promise.all(
    ['leaving', 'staying'].map((name) => startServiceProcess(join(dir.path, name), settings)),
  );
  if (leaving === undefined || staying === undefined) throw new Error('There are two instances');
  try {
    await closedLoop({ clients: STARTERS, goesOn: (acts) => acts < runs, act: () => startRun(leaving.url) });
    const claims = allClaimed(log, runs);
    await claims.isListening;
    const fromMs = performance.now();
    const stopped = leaving.stop();
    const ms = (await claims.last) - fromMs;
    await stopped;
    return ms;
  } finally {
    await Promise.all([leaving.stop(), staying.stop()]);
    await log.close();
    model.closeAllConnections();
    model.close();
    dir.remove();
  }
}

async function startRun(url: string): Promise<void> {
  const response = await fetch(`${url}/api/councils/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ input_topic: 'A run that changes hands' }),
  });
  if (response.status !== 202) throw new Error(`A start was answered ${response.status}: ${await response.text()}`);
  await response.body?.cancel();
}

/** Hears of the claims recorded from now on; `last` is the time of the last of so many. */
function allClaimed(
  log: EventLog,
  runs: number,
): { readonly isListening: Promise<void>; readonly last: Promise<number> } {
  let heard = (): void => undefined;
  const isListening = new Promise<void>((resolve) => (heard = resolve));
  const last = (async () => {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    let claimed = 0;
    for await (const followed of log.subscribe(await log.head(), { signal })) {
      if (followed.kind === 'caughtUp') heard();
      if (followed.kind !== 'event' || followed.event.type !== 'RunClaimed') continue;
      claimed += 1;
      if (claimed === runs) return performance.now();
    }
    throw new Error(`Only ${claimed} of ${runs} runs were taken over within ${PATIENCE_MS} ms`);
  })();
  return { isListening: Promise.race([isListening, last.then(() => undefined)]), last };
}
