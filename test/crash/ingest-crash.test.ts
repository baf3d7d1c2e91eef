import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeSystem } from '../../src/system/system.js';
import type { DocumentEvent } from '../../src/documents/events.js';
import { readDocument } from '../../src/documents/events.js';
import { startChild } from '../support/child.js';
import type { FakeProvider } from '../support/fake-provider.js';
import { fakeProvider } from '../support/fake-provider.js';
import type { IngestPlan } from '../support/ingest-child.js';
import type { AppendBoundary } from '../support/mortal-log.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine } from '../support/open-engine.js';
import { pdfExtractor } from '../../src/pdf/extract.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { idOf, pdfWith } from '../support/upload-client.js';
import { IS_SOAK, sample } from '../support/soak.js';

const CHILD = fileURLToPath(new URL('../support/ingest-child.js', import.meta.url));
/** Pages of one chunk each, which need two events of chunks and two of vectors. */
const PAGES = 70;
const PDF = pdfWith(
  ...Array.from({ length: PAGES }, (_, page) =>
    Array.from(
      { length: 12 },
      (_, line) => `Page ${page}, line ${line}: ${'the council reads what it is given, '.repeat(2)}.`,
    ),
  ),
);
/** The appends without a crash: two with chunks, two with vectors, and the completion. */
const APPENDS = 5;
/** The kinds of appends: chunks, vectors, the completion. */
const KINDS = 3;

describe('An upload whose process is killed', () => {
  let dir: TempDir;
  let provider: FakeProvider;

  beforeEach(async () => {
    dir = tempDir();
    provider = await fakeProvider('');
    writeFileSync(join(dir.path, 'file.pdf'), PDF);
    const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid });
    const text = await extractor.extract(() => Promise.resolve(new Uint8Array(PDF)));
    writeFileSync(join(dir.path, 'text.json'), JSON.stringify(text));
  });
  afterEach(async () => {
    await provider.stop();
    dir.remove();
  });

  interface Outcome {
    readonly chunks: number;
    readonly isNew: boolean;
  }
  /** Runs one life of a child process. Returns its outcome, or null if it was killed before. */
  const live = async (crash: IngestPlan['crash']): Promise<Outcome | null> => {
    const plan: IngestPlan = {
      path: join(dir.path, 'data'),
      file: join(dir.path, 'file.pdf'),
      id: idOf(PDF),
      filename: 'file.pdf',
      textFile: join(dir.path, 'text.json'),
      embeddings: provider.embeddings(),
      crash,
    };
    const { signal, stderr, stdout } = await startChild(process.execPath, [CHILD, JSON.stringify(plan)]).exit;
    expect(stderr).to.equal('');
    if (stdout === '') expect(signal).to.equal('SIGKILL');
    return stdout === '' ? null : (JSON.parse(stdout) as Outcome);
  };

  /** An engine in this process, for a life that is not killed. */
  const withEngine = async <T>(work: (engine: TestEngine) => Promise<T>): Promise<T> => {
    const engine = await openTestEngine({
      path: join(dir.path, 'data'),
      embeddings: provider.embeddings(),
      model: scriptedModel(),
    });
    await engine.recovery.unfinished();
    try {
      return await work(engine);
    } finally {
      await engine.stop();
    }
  };
  const ingest = async ({ documents }: TestEngine): Promise<Outcome> => {
    const file = { id: idOf(PDF), filename: 'file.pdf', bytes: PDF.length, read: async () => new Uint8Array(PDF) };
    const { chunks, isNew } = await documents.ingest(file);
    return { chunks, isNew };
  };
  const recorded = async ({ log }: TestEngine): Promise<readonly DocumentEvent[]> => {
    const events: DocumentEvent[] = [];
    const { sha256 } = nodeSystem();
    for await (const event of readDocument(log, idOf(PDF), { sha256 })) events.push(event);
    return events;
  };

  const points = [
    ['append durable', 0],
    ['append sent', 0],
    ['append unsent', 1],
  ] as const satisfies readonly (readonly [AppendBoundary, number])[];
  for (const [boundary, ordinal] of sample(points, 1)) {
    // Each life is a process. Without a soak each kind of append is tested at one boundary only.
    const isAtEach = IS_SOAK || boundary === 'append durable';
    const where = IS_SOAK ? 'every append' : isAtEach ? 'each kind of append' : 'one append';
    it(`resumes at the next upload after a kill at ${where}, ${boundary}, and requests no vector twice`, async () => {
      let lives = 0;
      let outcome: Outcome | null = null;
      while (outcome === null) {
        lives += 1;
        expect(lives).to.be.at.most(4 * APPENDS);
        // A sent append may be lost, so that only every second life makes progress.
        const isFirst = boundary !== 'append sent' || lives % 2 === 1;
        // After chunks, after vectors, after the completion: from the second life on two appends each.
        const isFurther = IS_SOAK ? !isFirst : lives > 1;
        const isLast = !IS_SOAK && lives > (isAtEach ? KINDS : 1);
        outcome = isLast
          ? await withEngine(ingest)
          : await live({ boundary, ordinal: isFurther ? ordinal + 1 : ordinal });
      }
      expect(lives).to.be.at.least(IS_SOAK ? APPENDS / 2 : isAtEach ? KINDS + 1 : 2);
      expect(outcome.chunks).to.equal(PAGES);

      const [events, again] = await withEngine(
        async (engine) => [await recorded(engine), await ingest(engine)] as const,
      );
      expect(events.map(({ type }) => type)).to.deep.equal([
        ...['DocumentReceived', 'ChunksAdded', 'ChunksAdded', 'ChunksEmbedded', 'ChunksEmbedded', 'DocumentIngested'],
      ]);
      const chunks = events.flatMap((event) => (event.type === 'ChunksAdded' ? event.data.chunks : []));
      expect(chunks.map(({ page }) => page)).to.deep.equal(Array.from({ length: PAGES }, (_, index) => index + 1));
      const vectors = events.flatMap((event) => (event.type === 'ChunksEmbedded' ? event.data.vectors : []));
      expect(vectors).to.have.lengthOf(PAGES);
      expect(again).to.deep.equal({ chunks: PAGES, isNew: false });
      // The service never requests durable vectors again, and may request the vectors of one lost event again.
      if (boundary === 'append durable') expect(provider.embedded()).to.deep.equal(chunks.map(({ text }) => text));
    });
  }
});
