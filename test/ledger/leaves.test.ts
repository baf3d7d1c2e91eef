import { join } from 'node:path';
import { expect } from 'chai';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, Position } from '../../src/eventlog/port.js';
import type { Leaf } from '../../src/ledger/events.js';
import { LEDGER_STREAM, leafOf } from '../../src/ledger/events.js';
import { Ledger } from '../../src/ledger/ledger.js';
import { nodeSystem } from '../../src/system/system.js';
import type { RunningService } from '../support/running-service.js';
import { changedLog } from '../support/changed-log.js';
import { restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

async function leavesOf({ context }: RunningService): Promise<readonly Leaf[]> {
  const leaves: Leaf[] = [];
  for await (const event of context.log.readStream(LEDGER_STREAM)) leaves.push(leafOf(event));
  return leaves;
}

describe('The leaves of the ledger', () => {
  it('name the end of each run once, also after a restart', async () => {
    const dir = tempDir();
    let service = await startService({ dataDir: dir.path });
    const ids = await Promise.all([1, 2, 3].map(() => restClient(service.url).start()));
    await untilTrue(async () => (await leavesOf(service)).length === 3);
    const leaves = await leavesOf(service);
    expect(leaves.map((leaf) => leaf.kind === 'run' && leaf.runId)).to.have.members(ids);
    for (const leaf of leaves) {
      if (leaf.kind !== 'run') throw new Error('no leaf of a run');
      const page = (await (await fetch(`${service.url}/api/runs/${leaf.runId}/events?limit=1000`)).json()) as {
        events: readonly { hash: string; at: string }[];
      };
      const last = page.events.at(-1);
      expect(leaf).to.deep.equal({
        kind: 'run',
        runId: leaf.runId,
        events: page.events.length,
        headHash: last?.hash,
        status: 'completed',
        endedAt: last?.at,
      });
      expect(await service.context.history.leafOf(leaf.runId)).to.equal(leaves.indexOf(leaf));
    }
    const late = await restClient(service.url).start();
    await service.stop();
    service = await startService({ dataDir: dir.path });
    await untilTrue(async () => (await leavesOf(service)).length === 4);
    expect((await leavesOf(service))[3]).to.include({ runId: late });
    await service.stop();
    dir.remove();
  });

  it('are complete after a service that ran for less than a second', async () => {
    const dir = tempDir();
    const records: string[] = [];
    // The stop adds them, and closes the log.
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        append(stream, events, expected) {
          if (stream === LEDGER_STREAM) records.push(...events.map(({ data }) => data));
          return log.append(stream, events, expected);
        },
      });
    const service = await startService({ dataDir: dir.path, decorate });
    const rest = restClient(service.url);
    const id = await rest.start();
    await rest.until(id, ({ status }) => status === 'completed');
    await service.stop();
    expect(records.join()).to.include(id);
    dir.remove();
  });

  it('of more ended runs than fit in memory are added after an upgrade, once and in order, by two instances', async () => {
    const dir = tempDir();
    const log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
    const ids: string[] = [];
    const ends = async (count: number): Promise<void> => {
      const added = Array.from({ length: count }, () => nodeSystem().uuid());
      ids.push(...added);
      await Promise.all(added.map((id) => log.append(`run-${id}`, [end()], 'none')));
    };
    for (let n = 0; n < 22; n += 1) await ends(500);
    const faults: unknown[] = [];
    const stopping = new AbortController();
    const followed = [1, 2].map(() =>
      ledgerOn(log, { onFault: (error) => faults.push(error), signal: stopping.signal }),
    );
    const ledgers = followed.map(({ ledger }) => ledger);
    for (const ledger of ledgers) await ledger.fold();
    for (const ledger of ledgers) ledger.start();
    // These end while the earlier ones are added.
    for (let n = 0; n < 4; n += 1) await ends(50);
    await untilTrue(async () => ledgers.every(({ tree }) => tree.size === ids.length));
    const leaves: string[] = [];
    for await (const event of log.readStream(LEDGER_STREAM)) {
      const leaf = leafOf(event);
      if (leaf.kind === 'run') leaves.push(leaf.runId);
    }
    expect(leaves).to.deep.equal(ids);
    for (const ledger of ledgers)
      expect(ledger.tree.root().toString('hex')).to.equal(ledgers[0]?.tree.root().toString('hex'));
    expect(faults).to.deep.equal([]);
    await Promise.all(ledgers.map((ledger) => ledger.stop()));
    stopping.abort();
    await Promise.all(followed.map(({ following }) => following));
    await log.close();
    dir.remove();
  });
});

function end() {
  const metadata = { occurredAt: '2026-01-01T00:00:00.000Z', hash: 'a'.repeat(64) };
  return { id: nodeSystem().uuid(), type: 'RunCompleted', data: '{}', metadata };
}

/** A ledger that follows a log. */
function ledgerOn(
  log: EventLog,
  { onFault, signal }: { readonly onFault: (error: unknown) => void; readonly signal: AbortSignal },
) {
  let reached: Position | null = null;
  const projector = {
    waitFor: (position: Position | null) =>
      untilTrue(() => position === null || (reached !== null && reached >= position)),
  };
  const members = { isInTurn: () => true };
  const ledger = new Ledger({ log, system: nodeSystem(), members, projector, erasureOf: async () => null, onFault });
  const follow = async (): Promise<void> => {
    for await (const each of log.subscribe(null, { signal })) {
      if (each.kind !== 'event') continue;
      ledger.onEventRecorded(each.event);
      reached = each.event.position;
    }
  };
  return { ledger, following: follow() };
}
