import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeSystem, type System } from '../../src/system/system.js';
import { ServiceStopping } from '../../src/errors.js';
import { EXTRACT_LIMITS, restrictions, type ExtractLimits } from '../../src/pdf/extract.js';
import { pdfExtractor, type PdfExtractor } from '../../src/pdf/extract.js';
import { ExtractionBusy, PdfRefused } from '../../src/pdf/errors.js';
import { childPids } from '../support/child-watch.js';
import { startChild } from '../support/child.js';
import { tempDir } from '../support/temp-dir.js';
import { endlessPdf } from '../support/hostile-pdfs.js';
import { manualSystem } from '../support/manual-system.js';
import { linesAt, pdfOf } from '../support/pdf-writer.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

/** A limit in which a child process starts even on a busy machine. */
const AMPLE_MS = 120_000;
const SOUND = pdfOf([
  linesAt(['A council reads.'], { x: 50, y: 100 }),
  linesAt(['And it decides.'], { x: 50, y: 100 }),
]);
const NO_PDF = Buffer.from('GIF89a');

describe('Extraction in child processes', () => {
  /** Child processes of other tests, for example a browser. */
  let others: ReadonlySet<number>;
  before(() => (others = new Set(childPids())));
  const extractors: PdfExtractor[] = [];
  const extractor = (
    limits: Partial<ExtractLimits> = {},
    system: Pick<System, 'after'> = nodeSystem(),
  ): PdfExtractor => {
    const made = pdfExtractor({
      system,
      pid: process.pid,
      limits: { ...EXTRACT_LIMITS, timeoutMs: AMPLE_MS, ...limits },
    });
    extractors.push(made);
    return made;
  };
  afterEach(async () => {
    await Promise.all(extractors.splice(0).map((each) => each.stop()));
    expect(childPids().filter((pid) => !others.has(pid))).to.deep.equal([]);
  });

  it('lets its threads read nothing but code, write nothing and start nothing', async () => {
    const dir = tempDir();
    writeFileSync(join(dir.path, 'secret.txt'), 'secret');
    const program = fileURLToPath(new URL('../support/restricted-child.js', import.meta.url));
    const { stdout, stderr } = await startChild(process.execPath, [...restrictions(), program, dir.path], {}).exit;
    expect(stdout.trim().split('\n'), stderr).to.deep.equal([
      'reads its own code: yes',
      'reads a file: ERR_ACCESS_DENIED',
      'writes a file: ERR_ACCESS_DENIED',
      'starts a program: ERR_ACCESS_DENIED',
      'makes code of a text: refused',
      'loads native code: ERR_DLOPEN_DISABLED',
    ]);
    dir.remove();
  });

  it('returns all pages that pdfjs reads, including empty ones, from a view into a larger buffer', async () => {
    const file = pdfOf([
      linesAt(['A council reads.'], { x: 50, y: 100 }),
      [],
      linesAt(['It decides.'], { x: 50, y: 100 }),
    ]);
    const around = Buffer.concat([Buffer.from('something else'), file, Buffer.from('something else')]);
    const within = around.subarray(14, 14 + file.length);
    expect(await extractor().extract(() => Promise.resolve(within))).to.deep.equal({
      parser: 'pdfjs',
      pages: [
        { page: 1, text: 'A council reads.' },
        { page: 2, text: '' },
        { page: 3, text: 'It decides.' },
      ],
    });
  });

  it('falls back to pdf2json when pdfjs finds no letter', async () => {
    const sound = pdfOf([linesAt(['A council reads.'], { x: 50, y: 100, font: 'helvetica' })]).toString('latin1');
    // pdfjs drops a font with this encoding.
    const file = Buffer.from(sound.replace('/Differences [1 /fi', '/Differences [[] /f'), 'latin1');
    expect(await extractor().extract(() => Promise.resolve(file))).to.deep.equal({
      parser: 'pdf2json',
      pages: [{ page: 1, text: 'A council reads.' }],
    });
  });

  it('does not fall back to pdf2json when pdfjs fails on a file that may be encrypted', async () => {
    const sound = pdfOf([linesAt(['A council reads.'], { x: 50, y: 100, font: 'helvetica' })]).toString('latin1');
    const file = Buffer.from(sound.replace('/Differences [1 /fi', '/Differences [[]  /Encrypt'), 'latin1');
    expect(await extractor().extract(() => Promise.resolve(file))).to.deep.equal({
      parser: 'pdfjs',
      pages: [{ page: 1, text: '' }],
    });
  });

  it('names the reason of each refusal', async () => {
    const reasonOf = async (bytes: Buffer, limits: Partial<ExtractLimits> = {}): Promise<string> => {
      return reasonIn(await rejectionOf(extractor(limits).extract(() => Promise.resolve(bytes))));
    };
    expect(await reasonOf(NO_PDF)).to.equal('not-a-pdf');
    expect(await reasonOf(SOUND, { maxBytes: SOUND.length - 1 })).to.equal('too-large');
    expect(await reasonOf(SOUND, { maxPages: 1 })).to.equal('too-many-pages');
    expect(await reasonOf(SOUND, { maxTextUnits: 10 })).to.equal('too-much-text');
    expect(await reasonOf(SOUND, { maxMemoryMb: 20 })).to.equal('out-of-memory');
    expect(await reasonOf(Buffer.from('%PDF-1.7\nnothing else'))).to.equal('unreadable');
  });

  soakIt('reads a file when the time limit passes before the child process has started', async () => {
    const system = manualSystem();
    const reading = extractor({ timeoutMs: EXTRACT_LIMITS.timeoutMs }, system).extract(() => Promise.resolve(SOUND));
    await untilTrue(() => system.timers() > 0);
    system.advance(EXTRACT_LIMITS.timeoutMs);
    const { parser, pages } = await reading;
    expect([parser, pages.length]).to.deep.equal(['pdfjs', 2]);
  });

  it('ends a child that exceeds its limit of processor time, even if no time passes on the clock', async () => {
    const reading = extractor({ timeoutMs: 300 }, manualSystem()).extract(() => Promise.resolve(endlessPdf()));
    expect(await rejectionOf(reading)).to.have.property('code', 'pdf.timed-out');
  });

  it('ends an idle child after eight times the limit on the clock', async () => {
    const system = manualSystem();
    const reading = rejectionOf(extractor({}, system).extract(() => Promise.resolve(endlessPdf())));
    const children = (): readonly number[] => childPids().filter((pid) => !others.has(pid));
    await untilTrue(() => children().length > 0);
    for (const pid of children()) process.kill(pid, 'SIGSTOP');
    system.advance(8 * AMPLE_MS);
    expect(await reading).to.have.property('code', 'pdf.timed-out');
  });

  soakIt('refuses an XFA form or a portfolio whose only page is a placeholder', async () => {
    const advice = linesAt(
      ['Please wait...', 'If this message is not eventually replaced by the proper contents, get another viewer.'],
      { x: 50, y: 100 },
    );
    const form = '/AcroForm << /Fields [] /XFA 7 0 R >> /NeedsRendering true';
    const portfolio = '/Collection << /Type /Collection /View /D >>';
    const outcomeOf = async (pages: number, catalog: string): Promise<string> => {
      const file = pdfOf(
        Array.from({ length: pages }, () => advice),
        { catalog },
      );
      return await extractor()
        .extract(() => Promise.resolve(file))
        .then(({ pages: read }) => `${read.length} pages`, reasonIn);
    };
    expect(await outcomeOf(1, form)).to.equal('xfa-form');
    expect(await outcomeOf(1, portfolio)).to.equal('portfolio');
    expect(await outcomeOf(2, form)).to.equal('2 pages');
    expect(await outcomeOf(2, portfolio)).to.equal('2 pages');
  });

  it('reads an XFA form or a portfolio whose only page has more text than a placeholder', async () => {
    const outcomeOf = async (units: number, catalog: string): Promise<string> => {
      const lines = Array.from({ length: Math.ceil(units / 50) }, () => 'x'.repeat(49));
      const file = pdfOf([linesAt(lines, { x: 50, y: 50 })], { catalog });
      return await extractor()
        .extract(() => Promise.resolve(file))
        .then(({ pages: read }) => `${read.length} pages`, reasonIn);
    };
    const form = '/AcroForm << /Fields [] /XFA 7 0 R >> /NeedsRendering true';
    const portfolio = '/Collection << /Type /Collection /View /D >>';
    expect(await outcomeOf(1_000, form)).to.equal('xfa-form');
    expect(await outcomeOf(1_500, form)).to.equal('1 pages');
    expect(await outcomeOf(300, portfolio)).to.equal('portfolio');
    expect(await outcomeOf(500, portfolio)).to.equal('1 pages');
  });

  it('limits concurrent extractions, queues more in order, and refuses one more when the queue is full', async () => {
    const busy = extractor({ maxChildren: 1, maxWaiting: 2 });
    const [read, outcomes]: [number[], string[]] = [[], []];
    // Only the first needs a child process. The others are read in order too, and refused because they are not PDFs.
    const work = [SOUND, NO_PDF, NO_PDF].map(async (bytes, index) => {
      const reading = busy.extract(() => {
        read.push(index);
        return Promise.resolve(bytes);
      });
      outcomes.push(await reading.then(({ pages }) => `${pages.length} pages`, reasonIn));
    });
    expect(await rejectionOf(busy.extract(() => Promise.resolve(NO_PDF)))).to.be.instanceOf(ExtractionBusy);
    await Promise.all(work);
    expect(read).to.deep.equal([0, 1, 2]);
    expect(outcomes).to.deep.equal(['2 pages', 'not-a-pdf', 'not-a-pdf']);
    expect(reasonIn(await rejectionOf(busy.extract(() => Promise.resolve(NO_PDF))))).to.equal('not-a-pdf');
  });

  it('stops running and waiting extractions when it is closed, and refuses new ones', async () => {
    const stopped = extractor();
    const work = [
      stopped.extract(() => Promise.resolve(endlessPdf())),
      stopped.extract(() => Promise.resolve(SOUND)),
    ].map(rejectionOf);
    await Promise.all([stopped.stop(), stopped.stop()]);
    for (const each of work) expect(await each).to.be.instanceOf(ServiceStopping);
    expect(await rejectionOf(stopped.extract(() => Promise.resolve(SOUND)))).to.be.instanceOf(ServiceStopping);
    expect(childPids().filter((pid) => !others.has(pid))).to.deep.equal([]);
  });

  it('leaves no child process when the service is killed during an extraction', async () => {
    const program = fileURLToPath(new URL('../support/extract-parent.js', import.meta.url));
    const parent = startChild(process.execPath, [program]);
    await parent.waitFor((lines) => lines.length > 0);
    const child = Number(parent.lines[0]);
    await parent.kill();
    await untilTrue(() => !isAlive(child));
  });
});

/** The reason of a refusal, or the text of another error. */
function reasonIn(error: unknown): string {
  return error instanceof PdfRefused ? error.data.reason : String(error);
}

/** Whether a process with this id exists. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
