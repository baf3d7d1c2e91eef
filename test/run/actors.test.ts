import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { eventLine } from '../../src/cli/terminal/event-line.js';
import { documentStream } from '../../src/documents/events.js';
import { blueprintStream } from '../../src/blueprint/events.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { SCOPES } from '../../src/keys/caller.js';
import { fieldOf } from '../../src/system/untrusted.js';
import { buildForkRequest } from '../../src/run/fork.js';
import { begun, graphOf, RUN_ID } from '../support/given.js';
import { decision, pausedBefore } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, plainName, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import { runWhen } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const { sha256, uuid } = nodeSystem();
const LINE = graphOf('one -> two');
const NO_CHANGES = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null };
const plainly = (_: string, text: string): string => text;

/** The actor of each event of a stream that names one, after the event's type. */
async function actorsIn(log: EventLog, stream: string): Promise<readonly (readonly [string, unknown])[]> {
  const all: (readonly [string, unknown])[] = [];
  for await (const { type, data } of log.readStream(stream)) {
    const actor = fieldOf(JSON.parse(data), 'actor');
    if (actor !== undefined) all.push([type, actor]);
  }
  return all;
}

describe('The actor of an event', () => {
  let dir: TempDir;
  let engine: TestEngine;

  before(async () => {
    dir = tempDir();
    engine = await openTestEngine({ path: dir.path, model: instantModel() });
  });
  after(async () => {
    await engine.stop();
    expect(engine.faults).to.deep.equal([]);
    dir.remove();
  });
  const startedBy = async (actor: string): Promise<string> => {
    const runId = uuid();
    await engine.registry.start({ ...runRequest(runId, { graph: LINE, godMode: true }), actor });
    return runId;
  };

  it("is in a run's request", async () => {
    expect(begun({ ...runRequest(RUN_ID), actor: 'ann' }).run.request.actor).to.equal('ann');
    const runId = await startedBy('ann');
    expect(await engine.queries.find(runId)).to.include({ actor: 'ann' });
    expect((await engine.queries.list({ limit: 1, offset: 0 }))[0]).to.include({ id: runId, actor: 'ann' });
  });

  it("of a fork is the caller who forked, not the parent's", () => {
    const { run } = begun({ ...runRequest(RUN_ID, { graph: LINE }), actor: 'ann' });
    const forked = buildForkRequest(run, NO_CHANGES, {
      runId: uuid(),
      bodyHash: 'b',
      actor: 'ben',
      fullName: plainName,
      sha256,
    });
    expect(forked.actor).to.equal('ben');
    expect(begun(forked).run.request.actor).to.equal('ben');
  });

  it('is recorded with a decision and its comment, and shown by genealogy and terminal', async () => {
    const runId = await startedBy('ann');
    await pausedBefore(engine, runId, 'one');
    const caller = { actor: 'ben', scopes: new Set(SCOPES) };
    await engine.registry.decidePause(runId, decision('reject', { caller, comment: 'Too\nlong' }));
    const events = await checkRecord(engine.log, runId);
    expect(factsOf(events, 'GateDecided')[0]).to.deep.include({ actor: 'ben', comment: 'Too\nlong' });
    const genealogy = await engine.audits.genealogy(runId);
    expect(genealogy).to.deep.include({ actor: 'ann' });
    expect(genealogy?.decisions[0]).to.deep.include({ actor: 'ben', comment: 'Too\nlong' });
    const lines = events.map((event) => eventLine(event, plainly, null)).join('\n');
    expect(lines).to.include('God Mode by ann').and.include('reject of pause 1 by ben: "Too long"');
  });

  it('is recorded with the cancellation of a paused and of a live run', async () => {
    const resting = await startedBy('ann');
    await pausedBefore(engine, resting, 'one');
    const live = uuid();
    await engine.registry.start(runRequest(live));
    for (const runId of [resting, live]) {
      const cancelled = await engine.registry.cancel(runId, 'eve').catch(() => null);
      if (cancelled === null) continue;
      const [failed] = factsOf(await checkRecord(engine.log, runId), 'RunFailed');
      expect(failed).to.deep.include({ kind: 'cancelled', actor: 'eve' });
      expect((await engine.audits.genealogy(runId))?.outcome).to.include({ kind: 'cancelled', actor: 'eve' });
    }
    await runWhen(engine, resting, ({ phase }) => phase.status === 'failed');
  });

  it('is in the events of blueprints', async () => {
    const id = 'named';
    await engine.blueprints.create({ id, name: 'Named', nodes: [{ id: 'a' }] }, { actor: 'ann' });
    await engine.blueprints.update(id, { name: 'Other' }, { actor: 'ben' });
    await engine.blueprints.remove(id, { actor: 'eve' });
    expect(await actorsIn(engine.log, blueprintStream(id))).to.deep.equal([
      ['BlueprintCreated', 'ann'],
      ['BlueprintUpdated', 'ben'],
      ['BlueprintDeleted', 'eve'],
    ]);
  });

  it('is in the events of documents', async () => {
    const bytes = new TextEncoder().encode('%PDF-');
    const file = { id: sha256('x'), filename: 'x.pdf', bytes: bytes.length, read: async () => bytes };
    const extracting = await openTestEngine({
      path: `${dir.path}/documents`,
      model: instantModel(),
      extractor: {
        extract: async () => ({ pages: [{ page: 1, text: 'A page of text.' }], parser: 'pdfjs' }),
        stop: async () => undefined,
      },
    });
    await extracting.documents.ingest({ ...file, actor: 'ann' });
    expect(await actorsIn(extracting.log, documentStream(file.id))).to.deep.equal([['DocumentReceived', 'ann']]);
    await extracting.stop();
  });
});
