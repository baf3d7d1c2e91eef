import { expect } from 'chai';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DocumentAudits } from '../../src/app/document-audits.js';
import { RunAudits } from '../../src/app/run-audits.js';
import { CorruptDocuments } from '../../src/documents/verify.js';
import { DocumentCorrupt } from '../../src/documents/errors.js';
import { documentStream } from '../../src/documents/events.js';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import { CorruptRuns } from '../../src/projections/corrupt-runs.js';
import { Projector } from '../../src/projections/projector.js';
import { History } from '../../src/projections/run-history.js';
import { RunStates } from '../../src/run/runs/states.js';
import type { ViewsClient } from '../../src/projections/views/views-client.js';
import { openViews } from '../../src/projections/views/views-client.js';
import { chartCache } from '../../src/run/chart/machine.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { manualSystem } from '../support/manual-system.js';
import { readerOf } from '../support/reader-of.js';
import { openStoryLog, recordedStory, appendStory } from '../support/story-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const { uuid } = nodeSystem();

describe('The background check of records', () => {
  let dir: TempDir;
  let log: EventLog;
  let stored: ViewsClient;
  let history: History;
  let projector: Projector;
  let logged: { readonly message: string; readonly documentId: unknown }[];

  const system = nodeSystem();
  const logger = {
    info: () => undefined,
    error: (about: object, message: string) =>
      void logged.push({ message, documentId: Reflect.get(about, 'documentId') }),
  };
  const onFault = (error: unknown): void => void logged.push({ message: String(error), documentId: undefined });

  beforeEach(async () => {
    dir = tempDir();
    logged = [];
    log = await openStoryLog(dir.path);
    const at = { identity: await log.identity(), head: await log.head() };
    const deps = { system, onFault, onLost: onFault, corruptRuns: () => [] };
    stored = await openViews({ file: join(dir.path, 'views.sqlite'), log: at }, deps);
    history = new History({ views: stored, system, onFault });
    // The test never starts the projector, as if the log were unreachable.
    projector = new Projector({
      log,
      states: new RunStates(readerOf(log)),
      history,
      system,
      onFault,
    });
  });
  afterEach(async () => {
    await stored.close();
    await log.close();
    dir.remove();
  });

  const corruptDocument = (id: string): CorruptDocuments => {
    const corrupt = new CorruptDocuments();
    corrupt.found(new DocumentCorrupt({ documentId: id, seq: 0, reason: 'a test' }));
    return corrupt;
  };
  const eventOf = (id: string): RecordedEvent => ({
    id: uuid(),
    type: 'DocumentDeleted',
    data: '{}',
    metadata: {},
    stream: documentStream(id),
    revision: 0,
    position: '1' as RecordedEvent['position'],
  });

  it('ends with the service even if the views never catch up with the log', async () => {
    const runId = uuid();
    const story = await recordedStory();
    await appendStory(log, runId, story, 0, story.length);
    const corruptRuns = new CorruptRuns({
      known: [],
      store: stored.saveCorrupt,
      remove: stored.removeCorrupt,
      onFault,
    });
    const runs = new RunAudits({
      log,
      charts: chartCache(),
      corruptRuns,
      logger,
      system,
      reader: readerOf(log),
      history,
      projector,
    });
    await runs.check([{ runId, owner: null }]);
    await runs.stop();

    const corruptDocuments = corruptDocument('a');
    const documents = new DocumentAudits({ log, history, corruptDocuments, projector, system, logger });
    documents.onDocumentChanged(eventOf('a'));
    await nextTurn();
    await documents.stop();
    expect(logged).to.deep.equal([]);
  });

  it('retries a changed document while the log is away, and logs the document that it could not verify', async () => {
    const manual = manualSystem();
    const failures: Error[] = [new LogUnavailable(), new LogUnavailable(), new Error('a fault')];
    const failing = changedLog(log, {
      readStream: () => {
        throw failures.shift() ?? new Error('read too often');
      },
    });
    const documents = new DocumentAudits({
      log: failing,
      history,
      corruptDocuments: corruptDocument('a'),
      projector,
      system: manual,
      logger,
    });
    documents.onDocumentChanged(eventOf('a'));
    for (const waitMs of [50, 100]) {
      await untilTrue(() => manual.timers() === 1);
      manual.advance(waitMs);
    }
    await untilTrue(() => logged.length === 1);
    expect(logged).to.deep.equal([{ message: 'document: its changed record could not be verified', documentId: 'a' }]);
    expect(failures).to.deep.equal([]);
    await documents.stop();
  });
});
