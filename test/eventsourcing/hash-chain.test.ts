import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { ChainHead, ExportedEvent } from '../../src/eventsourcing/hash-chain.js';
import { checkLink, exportedOf, GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import type { NewEvent, Position, RecordedEvent } from '../../src/eventlog/port.js';

const AT = '2026-01-02T03:04:05.678Z';
const IDS = ['0b7c6a52-0000-4000-8000-000000000001', '0b7c6a52-0000-4000-8000-000000000002'] as const;
const FACTS = [
  { type: 'RunRequested', data: { runId: 'r', inputTopic: 'Das Meer "é"', limits: { 10: 1, 9: 2 } } },
  { type: 'NodeStarted', data: { step: 1, node: 'master_agent' } },
];

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

describe('Hash chain', () => {
  it('hashes exactly the bytes that this test writes out', () => {
    const first =
      `{"at":"${AT}","data":{"inputTopic":"Das Meer \\"é\\"","limits":{"10":1,"9":2},"runId":"r"},` +
      `"id":"${IDS[0]}","seq":0,"type":"RunRequested"}`;
    const second = `{"at":"${AT}","data":{"node":"master_agent","step":1},"id":"${IDS[1]}","seq":1,"type":"NodeStarted"}`;
    const firstHash = sha256('0'.repeat(64) + first);
    const secondHash = sha256(firstHash + second);
    const { exported } = seal({ seq: -1, hash: GENESIS_HASH });
    expect(exported.map(({ hash }) => hash)).to.deep.equal([firstHash, secondHash]);
    // These values must never change: another value would break every recorded chain.
    expect(firstHash).to.equal('46c9eba8466544f3b7f3387dc522cf77d98f2f4ab53b71c767e24b7b9e6bc1f6');
    expect(secondHash).to.equal('5577978b25aaa4ca556f6f6b539dd3ea9234d7298aa184052d76653b9defeb09');
  });

  it('seals events with canonical data and flat metadata', () => {
    const { events, exported } = seal({ seq: -1, hash: GENESIS_HASH });
    expect(events.map(({ id, type, data }) => ({ id, type, data }))).to.deep.equal([
      {
        id: IDS[0],
        type: 'RunRequested',
        data: '{"inputTopic":"Das Meer \\"é\\"","limits":{"10":1,"9":2},"runId":"r"}',
      },
      { id: IDS[1], type: 'NodeStarted', data: '{"node":"master_agent","step":1}' },
    ]);
    const shared = { schemaVersion: '1', $correlationId: 'r', instanceId: 'i', occurredAt: AT };
    expect(events.map(({ metadata }) => metadata)).to.deep.equal([
      { ...shared, $causationId: 'c', hash: exported[0]?.hash },
      { ...shared, $causationId: IDS[0], hash: exported[1]?.hash },
    ]);
  });

  it('continues after the head of a stream', () => {
    const { exported } = seal({ seq: 4, hash: 'a'.repeat(64) });
    expect(exported.map(({ seq }) => seq)).to.deep.equal([5, 6]);
    const [first] = exported;
    expect(first && checkLink('a'.repeat(64), first, sha256)).to.equal(true);
  });

  it('is verified after a round trip through a log that reorders members', () => {
    const { events, exported } = seal({ seq: -1, hash: GENESIS_HASH });
    const read = events.map((event, revision) => exportedOf(recorded(reordered(event), revision)));
    expect(read).to.deep.equal(exported);
    let previous = GENESIS_HASH;
    for (const event of read) {
      expect(checkLink(previous, event, sha256)).to.equal(true);
      previous = event.hash;
    }
  });

  it('fails at any change', () => {
    const { exported } = seal({ seq: -1, hash: GENESIS_HASH });
    const [event] = exported;
    if (event === undefined) throw new Error('Nothing was sealed');
    const changes: readonly Partial<ExportedEvent>[] = [
      { seq: 1 },
      { id: IDS[1] },
      { type: 'RunClaimed' },
      { at: '2026-01-02T03:04:05.679Z' },
      { data: { ...event.data, runId: 's' } },
      { hash: GENESIS_HASH },
      { hash: '' },
    ];
    for (const change of changes) {
      expect(checkLink(GENESIS_HASH, { ...event, ...change }, sha256), JSON.stringify(change)).to.equal(false);
    }
    expect(checkLink('1'.repeat(64), event, sha256)).to.equal(false);
  });

  it('fails at an event that another program wrote', () => {
    const foreign = exportedOf(recorded({ id: IDS[0], type: 'RunRequested', data: '{}', metadata: {} }, 0));
    expect(foreign).to.deep.include({ at: '', hash: '' });
    expect(checkLink(GENESIS_HASH, foreign, sha256)).to.equal(false);
  });
});

function seal(head: ChainHead): ReturnType<typeof sealEvents> {
  const ids = IDS.values();
  return sealEvents(head, FACTS, {
    at: AT,
    nextId: () => ids.next().value ?? '',
    sha256,
    instanceId: 'i',
    correlationId: 'r',
    causationId: 'c',
  });
}

function recorded(event: NewEvent, revision: number): RecordedEvent {
  return { ...event, stream: 'run-r', revision, position: String(revision) as Position };
}

/** The same JSON value as another text: members in reverse order, with white space. */
function reordered(event: NewEvent): NewEvent {
  const data = JSON.parse(event.data) as object;
  return { ...event, data: JSON.stringify(Object.fromEntries(Object.entries(data).reverse()), null, 2) };
}
