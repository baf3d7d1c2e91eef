/** What the console costs whoever looks at it: its bytes, its start, a storm of events, a step in time, its memory. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { nodeSystem } from '../../src/system/system.js';
import { CHROMIUM, NO_CHROMIUM } from '../support/chromium.js';
import { settled } from '../support/console-browser.js';
import { graphOf } from '../support/given.js';
import { instantModel } from '../support/instant-model.js';
import { runRequest } from '../support/open-engine.js';
import { allFinished } from '../support/run-when.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure, unmeasured } from './figure.js';
import { percentile } from './statistics.js';

/** The goals of the console: see README.md. */
const TARGETS = {
  size: { atMost: 110 },
  firstPaint: { atMost: 1_000 },
  interactive: { atMost: 1_500 },
  feed: { atMost: 50 },
  step: { atMost: 50 },
} as const;

/** Events of a run of the fixed graph with the instant model. */
const EVENTS_A_RUN = 18;
const EVENTS_A_SECOND = 1_000;
/** Events of the run that is gone through, at least; a node's execution is two. */
const LONG_EVENTS = 1_000;
const FOLDER = fileURLToPath(new URL('../../console/', import.meta.url));

export const consolePart: Part = {
  name: 'console',
  method: ({ rounds, consoleSeconds, consoleEvents, requests }) =>
    `Chromium, headless, on the machine of the service, which runs in this process. Bytes: each file of dist/console but ` +
    `share.js, which only shared files load, gzip -9. Start: ${rounds} times the list of runs in a new browser profile over loopback; first paint as the browser ` +
    `tells it, interactive once the list shows and the main thread has had a turn. Feed: ${EVENTS_A_SECOND} events/s for ` +
    `${consoleSeconds} s while the list of runs is looked at; the share is that of a core which the page's main thread took ` +
    `(TaskDuration). Steps: ${requests} key presses on the scrubber of a run of ${LONG_EVENTS} events, each to the frame ` +
    `after it. Memory: the heap after a collection, before and after ${consoleEvents.toLocaleString('en-US')} events as ` +
    `fast as they come, on the same page.`,
  async measure(effort) {
    const size = figure('all that browsers load, compressed', 'KB', [kilobytes()], TARGETS.size);
    if (CHROMIUM === null) return [size, unmeasured('the console in a browser', '', NO_CHROMIUM)];
    const service = await startService({ model: instantModel() });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    try {
      const longRun = await startLongRun(service);
      return [
        size,
        ...(await starts(browser, service, effort)),
        ...(await storms(browser, service, effort)),
        await steps(browser, `${service.url}/console/runs/${longRun}`, effort),
      ];
    } finally {
      await browser.close();
      await service.stop();
    }
  },
};

function kilobytes(): number {
  const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter(
    (each) => each.isFile() && each.name !== 'share.js',
  );
  const bytes = files.map(
    ({ parentPath, name }) => gzipSync(readFileSync(join(parentPath, name)), { level: 9 }).length,
  );
  return bytes.reduce((sum, each) => sum + each, 0) / 1_024;
}

/** A ring of nodes, gone round until no more executions are allowed. */
async function startLongRun({ engine }: RunningService): Promise<string> {
  const runId = nodeSystem().uuid();
  const nodes = LONG_EVENTS / 6;
  const ring = Array.from({ length: Math.ceil(nodes) }, (_, at) => `n${at} -> n${(at + 1) % Math.ceil(nodes)}`);
  await engine.registry.start(runRequest(runId, { graph: graphOf(ring.join('; ')) }));
  await allFinished(engine, [runId]);
  return runId;
}

async function starts(browser: Browser, { url }: RunningService, { rounds }: Effort): Promise<readonly Figure[]> {
  const [paints, interactives]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.addInitScript(`new MutationObserver((_, observer) => {
      if (document.querySelector('main [role="table"], main table, main .empty, main form') === null) return;
      observer.disconnect();
      setTimeout(() => (globalThis.interactiveMs = performance.now()));
    }).observe(document, { childList: true, subtree: true })`);
    await page.goto(`${url}/console/`);
    await settled(page);
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    paints.push(await page.evaluate<number>(`performance.getEntriesByName('first-contentful-paint')[0].startTime`));
    interactives.push(await page.evaluate<number>('globalThis.interactiveMs'));
    await context.close();
  }
  return [
    figure('first paint, cold cache', 'ms', paints, TARGETS.firstPaint),
    figure('interactive, cold cache', 'ms', interactives, TARGETS.interactive),
  ];
}

/** The list of runs, while more happens than anybody could read. */
async function storms(
  browser: Browser,
  service: RunningService,
  { consoleSeconds, consoleEvents }: Effort,
): Promise<readonly Figure[]> {
  const page = await browser.newPage();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  await page.goto(`${service.url}/console/`);
  await settled(page);
  const before = await metricsOf(session);
  await evenly(service, consoleSeconds);
  const after = await metricsOf(session);
  const share = (100 * (after.TaskDuration - before.TaskDuration)) / (after.Timestamp - before.Timestamp);
  const heapBefore = await heapMb(session);
  await atOnce(service, consoleEvents);
  const heapAfter = await heapMb(session);
  await page.close();
  return [
    figure(`${EVENTS_A_SECOND} events/s on the feed: share of a core`, '%', [share], TARGETS.feed),
    figure('heap of the list of runs', 'MB', [heapBefore]),
    figure(`heap after ${consoleEvents.toLocaleString('en-US')} more events`, 'MB', [heapAfter]),
  ];
}

async function evenly(service: RunningService, seconds: number): Promise<void> {
  const fromMs = performance.now();
  const started: Promise<string>[] = [];
  for (let ms = 0; ms < seconds * 1_000; ms = performance.now() - fromMs) {
    while (started.length * EVENTS_A_RUN < (ms / 1_000) * EVENTS_A_SECOND) started.push(startRun(service));
    await delay(10);
  }
  await allFinished(service.engine, await Promise.all(started));
}

async function atOnce(service: RunningService, events: number): Promise<void> {
  const AT_ONCE = 50;
  for (let done = 0; done < events; done += AT_ONCE * EVENTS_A_RUN) {
    const started = Array.from({ length: AT_ONCE }, () => startRun(service));
    await allFinished(service.engine, await Promise.all(started));
  }
}

async function startRun({ engine }: RunningService): Promise<string> {
  const runId = nodeSystem().uuid();
  await engine.registry.start(runRequest(runId));
  return runId;
}

interface Metrics {
  readonly TaskDuration: number;
  readonly Timestamp: number;
}

/** In seconds. */
async function metricsOf(session: CDPSession): Promise<Metrics> {
  const { metrics } = await session.send('Performance.getMetrics');
  const valueOf = (wanted: string): number => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN;
  return { TaskDuration: valueOf('TaskDuration'), Timestamp: valueOf('Timestamp') };
}

async function heapMb(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize / 1_048_576;
}

/** Steps back in time, from the end of a run. */
async function steps(browser: Browser, url: string, { requests }: Effort): Promise<Figure> {
  const page: Page = await browser.newPage();
  await page.goto(url);
  await settled(page);
  const slider = page.getByRole('slider', { name: 'Moment of the run' });
  await slider.focus();
  const taken = await page.evaluate<readonly number[]>(`(async () => {
    const slider = document.activeElement;
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const taken = [];
    for (let step = 0; step < ${Math.min(requests, LONG_EVENTS - 10)}; step += 1) {
      await frame();
      const from = performance.now();
      slider.value = Number(slider.value) - 1;
      slider.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await frame();
      taken.push(performance.now() - from);
    }
    return taken;
  })()`);
  await page.close();
  return figure(`a step at ${LONG_EVENTS} events, p95`, 'ms', [percentile(taken, 0.95)], TARGETS.step);
}
