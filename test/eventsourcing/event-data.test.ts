import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { openSchemas } from '../../src/api/schemas.js';
import { blueprintAfter } from '../../src/blueprint/events.js';
import { documentEventOf } from '../../src/documents/events.js';
import { BlueprintCorrupt } from '../../src/blueprint/errors.js';
import { DocumentCorrupt } from '../../src/documents/errors.js';
import { RunCorrupt } from '../../src/run/errors.js';
import type { ExportedEvent } from '../../src/eventsourcing/hash-chain.js';
import { GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import type { EventLog, Position, RecordedEvent } from '../../src/eventlog/port.js';
import { runStream } from '../../src/run/events.js';
import { foldRun, runEventOf } from '../../src/run/stream.js';
import { nodeSystem } from '../../src/system/system.js';
import { eventIn, GOLDEN } from '../support/golden.js';
import { goldenHistories } from '../support/golden-histories.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import { openStoryLog } from '../support/story-log.js';
import { tempDir } from '../support/temp-dir.js';

const { sha256 } = nodeSystem();
const schemas = openSchemas();

/** An event of a stream as the log gives it. */
function recordedAs(stream: string, type: string, data: object, seq = 0): RecordedEvent {
  const metadata = { hash: GENESIS_HASH, occurredAt: '2026-01-01T00:00:00.000Z', schemaVersion: '1' };
  return {
    id: `e${seq}`,
    stream,
    type,
    data: JSON.stringify(data),
    revision: seq,
    position: '0' as Position,
    metadata,
  };
}

/** The data without one of its fields, for each that its schema requires. */
function withoutEach(file: 'run-events.json' | 'document-events.json', type: string, data: object): readonly object[] {
  const required: unknown = schemas.document(file).properties?.[type]?.['required'] ?? [];
  return Object.keys(data)
    .filter((field) => Array.isArray(required) && required.includes(field))
    .map((field) => Object.fromEntries(Object.entries(data).filter(([name]) => name !== field)));
}

describe('An event whose data does not fit its schema', () => {
  const golden = readdirSync(GOLDEN).filter((name) => /^v.*\.ndjson$/.test(name));
  const events: readonly ExportedEvent[] = golden.flatMap((name) =>
    readFileSync(new URL(name, GOLDEN), 'utf8').trimEnd().split('\n').map(eventIn),
  );

  it('is not reported for any golden event, nor for one with an additional field', () => {
    for (const { type, data, seq } of events) {
      expect(runEventOf(recordedAs('run-1', type, data, seq)).data).to.deep.equal(data);
      expect(runEventOf(recordedAs('run-1', type, { ...data, ofLater: 1 }, seq)).type).to.equal(type);
    }
  });

  it('makes its run corrupt at that event, whichever field is missing', () => {
    let lacking = 0;
    for (const { type, data, seq } of events) {
      for (const broken of withoutEach('run-events.json', type, data)) {
        lacking += 1;
        expect(() => runEventOf(recordedAs('run-1', type, broken, seq)), JSON.stringify(broken))
          .to.throw(RunCorrupt, 'does not fit its schema')
          .with.nested.include({ 'data.runId': '1', 'data.seq': seq });
      }
    }
    expect(lacking).to.be.above(1_000);
  });

  it('makes its run corrupt although every hash is correct', async () => {
    const history = goldenHistories().get('fixed-graph') ?? [];
    const runId = history[0]?.type === 'RunRequested' ? history[0].data.runId : '';
    const at = history.findIndex(({ type }) => type === 'NodeCompleted');
    const facts = history.map(({ type, data }, seq) =>
      seq === at ? { type, data: { ...data, output: { draft: 7 } } } : { type, data },
    );
    const sealing = { at: '2026-01-01T00:00:00.000Z', nextId: manualSystem(7).uuid, sha256, instanceId: 'i' };
    const { events: sealed } = sealEvents({ seq: -1, hash: GENESIS_HASH }, facts, {
      ...sealing,
      correlationId: runId,
      causationId: runId,
    });
    const dir = tempDir();
    const log: EventLog = await openStoryLog(dir.path);
    await log.append(runStream(runId), sealed, 'none');
    const error = await rejectionOf(foldRun(log, runId, { sha256 }));
    expect(error).to.be.instanceOf(RunCorrupt).with.nested.property('data.seq', at);
    await log.close();
    dir.remove();
  });

  it('makes its blueprint corrupt', () => {
    const node = { id: 'n', label: 'N', systemPrompt: '', tools: { webSearch: false, pdfReader: false } };
    const blueprint = {
      id: 'b',
      version: 1,
      name: 'B',
      edges: [],
      warnings: [],
      createdAt: '2026-01-01T00:00:00.000Z',
      updatedAt: '2026-01-01T00:00:00.000Z',
      nodes: [{ ...node, position: { x: 0, y: 0 } }],
    };
    expect(blueprintAfter(recordedAs('blueprint-b', 'BlueprintCreated', { blueprint }))).to.include({ name: 'B' });
    for (const broken of [
      {},
      { blueprint: { ...blueprint, nodes: [node] } },
      { blueprint: { ...blueprint, id: 'c' } },
    ]) {
      expect(() => blueprintAfter(recordedAs('blueprint-b', 'BlueprintUpdated', broken))).to.throw(BlueprintCorrupt);
    }
  });

  it('makes its document corrupt', () => {
    const chunks = [{ page: 1, from: 0, to: 4, text: 'Oaks' }];
    const data = { DocumentReceived: { filename: 'a.pdf', bytes: 1, pages: 1 }, ChunksAdded: { chunks } };
    for (const [type, each] of Object.entries<object>(data)) {
      expect(documentEventOf(recordedAs('document-d', type, each)).type).to.equal(type);
      for (const broken of withoutEach('document-events.json', type, each)) {
        expect(() => documentEventOf(recordedAs('document-d', type, broken))).to.throw(DocumentCorrupt);
      }
    }
    const textless = { chunks: [{ ...chunks[0], text: null }] };
    expect(() => documentEventOf(recordedAs('document-d', 'ChunksAdded', textless))).to.throw(DocumentCorrupt);
  });
});
