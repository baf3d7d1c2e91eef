/**
 * What the log's promises alone cost: a loop that decides nothing. It records one run of the engine, and then only writes
 * that run's events again, under ids of their own, sealed into their hash chain, append by append as the engine does,
 * asking the model before each that completes a node. No actor, no fold, no read models, no recovery, no limits: what
 * records the same cannot take less.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { NewEvent } from '../../src/eventlog/port.js';
import type { ChainHead, Fact } from '../../src/eventsourcing/hash-chain.js';
import { GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import { nodeSystem } from '../../src/system/system.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { tempDir } from '../support/temp-dir.js';
import { overheard } from './bench-engine.js';
import type { Contestant, CouncilModel } from './contestant.js';
import { languageModel } from './engine-contestant.js';

export async function openContestant({
  path,
  model,
}: {
  readonly path: string;
  readonly model: CouncilModel;
}): Promise<Contestant> {
  const appends = await appendsOfARun(model);
  const { sha256 } = nodeSystem();
  const log = await openEmbeddedLog({ file: join(path, 'recorded-loop.sqlite') });
  return {
    async run() {
      const id = randomUUID();
      const sealing = { nextId: randomUUID, sha256, instanceId: id, correlationId: id, causationId: id };
      let head: ChainHead = { seq: -1, hash: GENESIS_HASH };
      for (const facts of appends) {
        if (facts.some(({ type }) => type === 'NodeCompleted')) await model.draft(null);
        const { events, exported } = sealEvents(head, facts, { ...sealing, at: new Date().toISOString() });
        await log.append(`run-${id}`, events, head.seq < 0 ? 'none' : head.seq);
        head = exported.at(-1) ?? head;
      }
    },
    stop: () => log.close(),
  };
}

/** The facts of each append of a run of the engine, in order. */
async function appendsOfARun(model: CouncilModel): Promise<readonly (readonly Fact[])[]> {
  const dir = tempDir();
  const appends: (readonly Fact[])[] = [];
  let onEnd = (): void => undefined;
  const ended = new Promise<void>((resolve) => (onEnd = resolve));
  const onAppended = (stream: string, events: readonly NewEvent[]): void => {
    if (!stream.startsWith('run-')) return;
    appends.push(events.map(({ type, data }) => ({ type, data: factOf(data) })));
    if (events.at(-1)?.type === 'RunCompleted') onEnd();
  };
  const engine = await openTestEngine({
    path: dir.path,
    model: languageModel(model),
    decorate: (log) => overheard(log, onAppended),
  });
  await engine.recover();
  await engine.registry.start(runRequest(randomUUID()));
  await ended;
  await engine.stop();
  dir.remove();
  return appends;
}

function factOf(data: string): object {
  const value: unknown = JSON.parse(data);
  if (typeof value !== 'object' || value === null) throw new Error('An event without data');
  return value;
}
