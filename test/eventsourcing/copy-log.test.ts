import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import type { Copied } from '../../src/eventsourcing/copy-log.js';
import { CopyRefused, copyLog } from '../../src/eventsourcing/copy-log.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { rejectionOf } from '../support/rejection.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const system = nodeSystem();
const { sha256, uuid } = system;

onEmbeddedLog(() =>
  describe('A copy of a log', () => {
    let dir: TempDir;
    /** The source. All tests share it, because none writes to it. */
    let from: EventLog;
    let to: EventLog;
    let targets = 0;

    before(async () => {
      dir = tempDir();
      await fill(join(dir.path, 'service'));
      from = await openEmbeddedLog({ file: join(dir.path, 'service', 'log.sqlite') });
    });
    after(async () => {
      await from.close();
      dir.remove();
    });
    beforeEach(async () => {
      targets += 1;
      to = await openEmbeddedLog({ file: join(dir.path, `target-${targets}.sqlite`) });
    });
    afterEach(() => to.close());

    const copy = (source = from, target = to): Promise<Copied> =>
      copyLog(source, target, { system, signal: new AbortController().signal, sha256 });
    const refusal = async (copying: Promise<unknown>): Promise<string> => {
      const error = await rejectionOf(copying);
      expect(error).to.be.instanceOf(CopyRefused);
      return (error as CopyRefused).message;
    };

    it('holds every stream with ids, types, data, metadata and order', async () => {
      const copied = await copy();
      const [source, target] = [await eventsOf(from), await eventsOf(to)];
      expect(target).to.deep.equal(source);
      expect(copied).to.deep.equal({ events: source.length, streams: 13, found: 0 });
    });

    it('continues after an interruption at any append', async () => {
      for (let appends = 0; ; appends += 1) {
        let left = 1;
        const breaking = changedLog(to, {
          append(stream, events, expected) {
            left -= 1;
            if (left < 0) throw new Error('Broken off');
            return to.append(stream, events, expected);
          },
        });
        const error = await copy(from, breaking).then(
          () => null,
          (cause: unknown) => cause,
        );
        if (error === null) break;
        expect(appends).to.be.lessThan(500);
      }
      const copied = await copy();
      expect(await eventsOf(to)).to.deep.equal(await eventsOf(from));
      expect(copied.found).to.equal(copied.events);
    });

    it('is refused if the target holds another stream', async () => {
      const event = { id: uuid(), type: 'Other', data: '{}', metadata: {} };
      await to.append('run-other', [event], 'none');
      expect(await refusal(copy()))
        .to.include('run-other')
        .and.include('the source does not have');
    });

    it('is refused if the target holds another history of a stream', async () => {
      const [first] = await eventsOf(from);
      if (first === undefined) throw new Error('The source is empty');
      await to.append(first.stream, [{ ...first, id: uuid() }], 'none');
      expect(await refusal(copy()))
        .to.include(first.stream)
        .and.include('another event');
    });

    it('is refused for a corrupt source, at the corrupt event', async () => {
      const source = await eventsOf(from);
      const at = source.findIndex(({ type }) => type === 'NodeCompleted');
      const corrupt = changedLog(from, {
        async *readAll() {
          for await (const event of from.readAll(null)) {
            const isIt = event.id === source[at]?.id;
            yield isIt ? { ...event, data: event.data.replace('Draft', 'Graft') } : event;
          }
        },
      });
      const text = await refusal(copy(corrupt));
      expect(text)
        .to.include(`revision ${String(source[at]?.revision)}`)
        .and.include(source[at]?.stream);
    });

    it('is refused if the copy lacks an event', async () => {
      await copy();
      const [, lost] = await eventsOf(to);
      const lossy = changedLog(to, {
        async *readAll() {
          for await (const event of to.readAll(null)) if (event.id !== lost?.id) yield event;
        },
      });
      expect(await refusal(copy(from, lossy))).to.include('is missing');
    });
  }),
);

async function fill(path: string): Promise<void> {
  const engine = await openTestEngine({ path, model: instantModel() });
  await engine.recover();
  const runIds = Array.from({ length: 12 }, uuid);
  await Promise.all(runIds.map((runId) => engine.registry.start(runRequest(runId))));
  await engine.blueprints.create({ id: 'copied', name: 'Plain', nodes: [{ id: 'a' }] });
  await allFinished(engine, runIds);
  await engine.stop();
}

/** All events without their positions, which differ between logs. */
async function eventsOf(log: EventLog): Promise<readonly Omit<RecordedEvent, 'position'>[]> {
  const events: Omit<RecordedEvent, 'position'>[] = [];
  for await (const { id, type, stream, revision, data, metadata } of log.readAll(null)) {
    events.push({ id, type, stream, revision, data, metadata });
  }
  return events;
}
