import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { exportLine, readExport } from '../../src/audit/export.js';
import type { Verified } from '../../src/audit/verify.js';
import { verifyRecord } from '../../src/audit/verify.js';
import type { ExportedEvent } from '../../src/eventsourcing/hash-chain.js';
import { chartCache } from '../../src/run/chart/machine.js';
import { offlineModel } from '../../src/models/offline.js';
import { graphWith } from '../support/given.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { recordOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { tempDir } from '../support/temp-dir.js';
import { flatState } from '../support/whole-run.js';

const IS_SOAK = process.env['SOAK'] !== undefined;
const { sha256, uuid } = nodeSystem();
const means = { charts: chartCache(), sha256 };
const RUN_ID = uuid();

describe('The verification of an export', () => {
  let lines: readonly string[];

  before(async () => {
    const dir = tempDir();
    const engine = await openTestEngine({ path: dir.path, model: instantModel() });
    await engine.recover();
    await engine.registry.start(runRequest(RUN_ID));
    await allFinished(engine, [RUN_ID]);
    lines = (await recordOf(engine.log, RUN_ID)).map(exportLine);
    await engine.stop();
    dir.remove();
  });

  const verify = (changed: readonly string[]): Promise<Verified> =>
    verifyRecord(RUN_ID, readExport(RUN_ID, asyncOf(changed)), means);
  /** The expected first difference: the first changed line. */
  const expectFound = async (changed: readonly string[], at: number): Promise<void> => {
    const { firstDifference, events } = await verify(changed);
    expect(firstDifference?.seq, `change at ${at}`).to.equal(at);
    expect(firstDifference?.what).to.be.a('string').that.is.not.empty;
    expect(events).to.equal(at);
  };
  const withLine = (at: number, ...insteads: readonly string[]): readonly string[] => [
    ...lines.slice(0, at),
    ...insteads,
    ...lines.slice(at + 1),
  ];

  it('verifies an unchanged export, and returns its head', async () => {
    const { firstDifference, events, headHash, run } = await verify(lines);
    expect(firstDifference).to.equal(null);
    expect(events).to.equal(lines.length);
    expect(headHash).to.equal((JSON.parse(lines.at(-1) ?? '') as ExportedEvent).hash);
    expect(flatState(run)).to.include({ status: 'completed', finalDraft: 'Draft 4' });
  });

  it('finds every changed byte and names its event', async () => {
    let cases = 0;
    for (const [at, line] of lines.entries()) {
      const bytes = Buffer.from(line);
      // A soak test flips every byte, other tests every 7th.
      for (let index = at % 7; index < bytes.length; index += IS_SOAK ? 1 : 7) {
        const flipped = Buffer.from(bytes);
        flipped[index] = (flipped[index] ?? 0) ^ (1 << (index % 7));
        const text = flipped.toString('utf8');
        if (text.includes('\n') || text.includes('\r')) continue;
        await expectFound(withLine(at, text), at);
        cases += 1;
      }
    }
    process.stderr.write(`      ${cases} flipped bytes, all found\n`);
  });

  it('finds every missing, swapped, repeated and incomplete event', async () => {
    for (const at of lines.keys()) {
      if (at < lines.length - 1) await expectFound(withLine(at), at);
      await expectFound(withLine(at, lines[at] ?? '', lines[at] ?? ''), at + 1);
      if (at < lines.length - 1) {
        const swapped = [...withLine(at, lines[at + 1] ?? '')];
        swapped[at + 1] = lines[at] ?? '';
        await expectFound(swapped, at);
      }
      for (const length of [0, 1, Math.floor((lines[at] ?? '').length / 2), (lines[at] ?? '').length - 1]) {
        await expectFound(withLine(at, (lines[at] ?? '').slice(0, length)), at);
      }
    }
  });

  it('counts the events of an export that is cut off between events', async () => {
    for (const at of lines.keys()) {
      const { firstDifference, events, run } = await verify(lines.slice(0, at));
      expect(firstDifference).to.equal(null);
      expect(events).to.equal(at);
      if (run !== null) expect(run.phase.status).to.equal(at === 0 ? 'pending' : run.phase.status);
    }
  });

  it('finds correctly chained events that the chart does not allow', async () => {
    const events = lines.map((line) => JSON.parse(line) as ExportedEvent);
    const at = events.findIndex(({ type }) => type === 'NodeCompleted');
    const forged = rechained(events.filter((_, index) => index !== at));
    await expectFound(forged.map(exportLine), at);
  });

  it('finds a node that starts without a branch', async () => {
    const events = lines.map((line) => JSON.parse(line) as ExportedEvent);
    const drafted = events.findIndex(({ type }) => type === 'NodeCompleted');
    const elsewhere = changed(events, drafted, { route: { next: ['writer_agent'], reason: 'linear' } });
    await expectFound(rechained(elsewhere).map(exportLine), drafted + 1);
  });

  it('finds an end that differs from the result of the branches, or that is too early', async () => {
    const events = lines.map((line) => JSON.parse(line) as ExportedEvent);
    const [last, drafted] = [events.length - 1, events.findIndex(({ type }) => type === 'NodeCompleted')];
    for (const lie of [{ finalDraft: 'Another' }, { finalDraft: null }, { criticScore: 10 }]) {
      await expectFound(rechained(changed(events, last, lie)).map(exportLine), last);
    }
    const early = changed(events, last, { finalDraft: 'Draft 1', criticScore: null }).slice(last);
    await expectFound(rechained([...events.slice(0, drafted + 1), ...early]).map(exportLine), drafted + 1);
  });

  it('finds a valid record under the id of another run', async () => {
    const other = uuid();
    const { firstDifference } = await verifyRecord(other, readExport(other, asyncOf(lines)), means);
    expect(firstDifference?.seq).to.equal(0);
    expect(firstDifference?.what).to.include(RUN_ID);
  });

  it('finds answers that were shown in another order than that of the record', async () => {
    const members = ['m1', 'm2', 'm3'].map((id) => ({ id, label: id }));
    const nodes = [
      { id: 'panel', role: 'panel' as const, members, graceMs: 0 },
      { id: 'rank', role: 'rank' as const },
    ];
    const graph = graphWith(nodes, [{ id: 'e', source: 'panel', target: 'rank', condition: null }]);
    const runId = uuid();
    const dir = tempDir();
    const engine = await openTestEngine({ path: dir.path, model: offlineModel({ system: nodeSystem() }) });
    await engine.recover();
    await engine.registry.start(runRequest(runId, { graph }));
    await allFinished(engine, [runId]);
    const events = await recordOf(engine.log, runId);
    await engine.stop();
    dir.remove();
    const verified = async (record: readonly ExportedEvent[]) =>
      (await verifyRecord(runId, readExport(runId, asyncOf(record.map(exportLine))), means)).firstDifference;
    expect(await verified(rechained(events))).to.equal(null);
    const shown = events.filter(({ data }) => 'order_shown' in data);
    expect(shown).to.have.lengthOf(3);
    for (const { seq, data } of shown) {
      const order = 'order_shown' in data && Array.isArray(data.order_shown) ? data.order_shown : [];
      const forged = changed(events, seq, { order_shown: [...order].reverse() });
      const difference = await verified(rechained(forged));
      expect(difference?.seq).to.equal(seq);
      expect(difference?.what).to.include(`its order_shown is ${[...order].reverse().join(', ')}`);
    }
  });

  it('finds a graph that does not match its hash', async () => {
    const events = lines.map((line) => JSON.parse(line) as ExportedEvent);
    const [first, ...rest] = events;
    if (first === undefined) throw new Error('There are events');
    const data = { ...first.data, graphHash: '0'.repeat(64) };
    await expectFound(rechained([{ ...first, data }, ...rest]).map(exportLine), 0);
  });
});

/** The events with one changed event. */
function changed(events: readonly ExportedEvent[], at: number, lie: object): readonly ExportedEvent[] {
  return events.map((event, seq) => (seq === at ? { ...event, data: { ...event.data, ...lie } } : event));
}

/** The events with new numbers and hashes, as a forger would write them. */
function rechained(events: readonly ExportedEvent[]): readonly ExportedEvent[] {
  let previous = '0'.repeat(64);
  return events.map(({ at, data, id, type }, seq) => {
    const line = exportLine({ at, data, hash: '', id, seq, type });
    const hash = sha256(previous + line.replace(',"hash":""', ''));
    previous = hash;
    return { at, data, hash, id, seq, type };
  });
}

async function* asyncOf<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}
