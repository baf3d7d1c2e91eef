/**
 * Starts a service on folders that were randomly damaged after a kill, and checks that each start serves, reports or
 * refuses.
 */
import { cpSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CouncilError } from '../../src/errors.js';
import { RunCorrupt } from '../../src/run/errors.js';
import { elementAt } from '../../src/system/element.js';
import { nodeSystem } from '../../src/system/system.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { allFinished } from '../support/run-when.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';

const PAGE_BYTES = 4096;

/** The acknowledged events of each run before the kill, as JSON. */
export interface CrashImage {
  readonly path: string;
  readonly runs: ReadonlyMap<string, readonly string[]>;
}

/** The folder after a kill: some records are in the log's file, the others only in its journal. */
export async function crashImage(path: string): Promise<CrashImage> {
  const folder = tempDir();
  const before = await openTestEngine({ path: folder.path, model: instantModel() });
  await before.recover();
  const ids = await finishedRuns(before, 25);
  await before.stop();
  const killed = await openTestEngine({ path: folder.path, model: instantModel() });
  await killed.recover();
  ids.push(...(await finishedRuns(killed, 10)));
  const paused = await startGodRun(killed, graphOf('write'));
  await pausedBefore(killed, paused, 'write');
  ids.push(paused);
  await killed.queries.list({ limit: 1, offset: 0 });
  const runs = new Map<string, readonly string[]>();
  for (const id of ids) runs.set(id, await recordOf(killed, id));
  mkdirSync(path, { recursive: true });
  for (const part of ['log.sqlite', 'log.sqlite-wal', 'log.sqlite-head', 'views']) {
    cpSync(join(folder.path, part), join(path, part), { recursive: true });
  }
  await killed.stop();
  folder.remove();
  return { path, runs };
}

async function finishedRuns(engine: TestEngine, count: number): Promise<string[]> {
  const { uuid } = nodeSystem();
  const ids = Array.from({ length: count }, uuid);
  for (const id of ids) await engine.registry.start(runRequest(id, { topic: 'Trees '.repeat(50) }));
  await allFinished(engine, ids);
  return ids;
}

/** The events as the audit endpoint serves them. */
async function recordOf(engine: TestEngine, runId: string): Promise<readonly string[]> {
  const page = await engine.queries.record(runId, { from: 0, limit: 1_000 });
  const events: string[] = [];
  if (page !== null) for await (const event of page.events()) events.push(JSON.stringify(event));
  return events;
}

export const TARGETS = ['log.sqlite', 'log.sqlite-wal', 'views/views.sqlite', 'views/views.sqlite-wal'] as const;
export const KINDS = ['flip', 'zero', 'truncate'] as const;

export interface Damage {
  readonly target: (typeof TARGETS)[number];
  readonly kind: (typeof KINDS)[number];
}

/**
 * `served`: all runs are served. `told`: each run that is not served was reported as corrupt. `refused`: the start
 * ended with one line.
 */
export type Verdict = 'served' | 'told' | 'refused';

export interface DamagedStart extends Damage {
  readonly verdict: Verdict;
  readonly recoveryMs: number;
}

/**
 * Damages a copy of the folder by a seed, and starts a service on it.
 * @throws {Error} something is missing without a report
 */
export async function damagedStart(image: CrashImage, seed: number): Promise<DamagedStart> {
  const dir = tempDir();
  try {
    cpSync(image.path, dir.path, { recursive: true });
    const damage = damaged(dir.path, seededRandom(seed));
    const begunMs = performance.now();
    const verdict = await verdictOn(dir.path, image);
    return { ...damage, verdict, recoveryMs: performance.now() - begunMs };
  } finally {
    dir.remove();
  }
}

function damaged(path: string, random: () => number): Damage {
  const below = (bound: number): number => Math.floor(random() * bound);
  const target = elementAt(TARGETS, below(TARGETS.length));
  const kind = elementAt(KINDS, below(KINDS.length));
  const file = join(path, target);
  const bytes = readFileSync(file);
  switch (kind) {
    case 'flip':
      for (let i = below(8); i >= 0; i -= 1) {
        const at = below(bytes.length);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
      }
      writeFileSync(file, bytes);
      break;
    case 'zero': {
      const from = below(Math.ceil(bytes.length / PAGE_BYTES)) * PAGE_BYTES;
      writeFileSync(file, bytes.fill(0, from, Math.min(bytes.length, from + PAGE_BYTES)));
      break;
    }
    case 'truncate':
      truncateSync(file, below(bytes.length));
      break;
    default:
      return kind satisfies never;
  }
  return { target, kind };
}

async function verdictOn(path: string, { runs }: CrashImage): Promise<Verdict> {
  let engine: TestEngine;
  try {
    engine = await openTestEngine({ path, model: instantModel() });
  } catch (error) {
    return refusal(error);
  }
  try {
    await engine.recovery.unfinished();
    const told = new Set<string>();
    for (const [id, events] of runs) if (!(await isServed(engine, id, events))) told.add(id);
    await assertListed(engine, { runs, told });
    return told.size === 0 ? 'served' : 'told';
  } catch (error) {
    return refusal(error);
  } finally {
    await engine.stop();
  }
}

/** Checks that the start ended with one line of an error that the service defines. */
function refusal(error: unknown): Verdict {
  if (error instanceof CouncilError && !error.message.includes('\n')) return 'refused';
  throw error;
}

/**
 * True if the service serves the acknowledged run, false if it reports the run as corrupt.
 * @throws {Error} it does neither
 */
async function isServed(engine: TestEngine, id: string, events: readonly string[]): Promise<boolean> {
  try {
    const found = await engine.queries.find(id);
    const record = await recordOf(engine, id);
    if (found !== null && record.join('\n') === events.join('\n')) return true;
  } catch (error) {
    if (error instanceof RunCorrupt) return false;
    throw error;
  }
  throw new Error(`Run ${id} is not served as it was acknowledged, and nothing is said`);
}

/** Checks that the list has every run, in its last state before the kill. */
async function assertListed(
  engine: TestEngine,
  { runs, told }: Pick<CrashImage, 'runs'> & { readonly told: ReadonlySet<string> },
): Promise<void> {
  const rows = await engine.queries.list({ limit: 200, offset: 0 });
  const statusOf = new Map(rows.map(({ id, status }) => [id, status]));
  for (const id of runs.keys()) {
    const found = statusOf.get(id);
    const isRight = told.has(id) || found === 'completed' || found === 'paused';
    if (found === undefined || !isRight) throw new Error(`Run ${id} is listed as ${String(found)}`);
  }
}
