import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { nodeSystem, type System } from '../../src/system/system.js';
import { ServiceStopping } from '../../src/errors.js';
import { EXTRACT_LIMITS, type ExtractLimits } from '../../src/pdf/extract.js';
import { pdfExtractor, type PdfExtractor } from '../../src/pdf/extract.js';
import { ExtractionBusy, PdfRefused } from '../../src/pdf/errors.js';
import { childPids } from '../support/child-watch.js';
import { startChild } from '../support/child.js';
import { endlessPdf } from '../support/hostile-pdfs.js';
import { manualSystem } from '../support/manual-system.js';
import { linesAt, pdfOf } from '../support/pdf-writer.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';

/** So long that a child starts within it on a machine that has much else to do. */
const AMPLE_MS = 120_000;
const SOUND = pdfOf([
  linesAt(['A council reads.'], { x: 50, y: 100 }),
  linesAt(['And it decides.'], { x: 50, y: 100 }),
]);
const NO_PDF = Buffer.from('GIF89a');

describe('Extraction in child processes', () => {
  /** Of other tests, such as a browser. */
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

  it('answers the pages by pdfjs, empty ones too, when it reads them within a larger buffer', async () => {
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

  it('reads by pdf2json what pdfjs finds no letter in', async () => {
    const sound = pdfOf([linesAt(['A council reads.'], { x: 50, y: 100, font: 'helvetica' })]).toString('latin1');
    // An encoding that pdfjs gives its font up for.
    const file = Buffer.from(sound.replace('/Differences [1 /fi', '/Differences [[] /f'), 'latin1');
    expect(await extractor().extract(() => Promise.resolve(file))).to.deep.equal({
      parser: 'pdf2json',
      pages: [{ page: 1, text: 'A council reads.' }],
    });
  });

  it('gives nothing to pdf2json that pdfjs fails at and that may be encrypted', async () => {
    const sound = pdfOf([linesAt(['A council reads.'], { x: 50, y: 100, font: 'helvetica' })]).toString('latin1');
    const file = Buffer.from(sound.replace('/Differences [1 /fi', '/Differences [[]  /Encrypt'), 'latin1');
    expect(await extractor().extract(() => Promise.resolve(file))).to.deep.equal({
      parser: 'pdfjs',
      pages: [{ page: 1, text: '' }],
    });
  });

  it('names what it refuses', async () => {
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

  it('reads a file on a machine so busy that the time limit passes on the clock before the child has begun', async () => {
    const system = manualSystem();
    const reading = extractor({ timeoutMs: EXTRACT_LIMITS.timeoutMs }, system).extract(() => Promise.resolve(SOUND));
    await untilTrue(() => system.timers() > 0);
    system.advance(EXTRACT_LIMITS.timeoutMs);
    const { parser, pages } = await reading;
    expect([parser, pages.length]).to.deep.equal(['pdfjs', 2]);
  });

  it('ends a child that has used its processor time, though the clock stands still', async () => {
    const reading = extractor({ timeoutMs: 300 }, manualSystem()).extract(() => Promise.resolve(endlessPdf()));
    expect(await rejectionOf(reading)).to.have.property('code', 'pdf.timed-out');
  });

  it('ends a child that uses no processor time, after eight times the limit on the clock', async () => {
    const system = manualSystem();
    const reading = rejectionOf(extractor({}, system).extract(() => Promise.resolve(endlessPdf())));
    const children = (): readonly number[] => childPids().filter((pid) => !others.has(pid));
    await untilTrue(() => children().length > 0);
    for (const pid of children()) process.kill(pid, 'SIGSTOP');
    system.advance(8 * AMPLE_MS);
    expect(await reading).to.have.property('code', 'pdf.timed-out');
  });

  it('refuses the placeholder of an XFA form and the cover of a portfolio, but not longer ones', async () => {
    const advice = linesAt(
      ['Please wait...', 'If this message is not eventually replaced by the proper contents, get another viewer.'],
      { x: 50, y: 100 },
    );
    const form = '/AcroForm << /Fields [] /XFA 7 0 R >> /NeedsRendering true';
    const portfolio = '/Collection << /Type /Collection /View /D >>';
    const told = async (pages: number, catalog: string): Promise<string> => {
      const file = pdfOf(
        Array.from({ length: pages }, () => advice),
        { catalog },
      );
      return await extractor()
        .extract(() => Promise.resolve(file))
        .then(({ pages: read }) => `${read.length} pages`, reasonIn);
    };
    expect(await told(1, form)).to.equal('xfa-form');
    expect(await told(1, portfolio)).to.equal('portfolio');
    expect(await told(2, form)).to.equal('2 pages');
    expect(await told(2, portfolio)).to.equal('2 pages');
  });

  it('reads an XFA form or a portfolio whose one page has more text than a placeholder', async () => {
    const told = async (units: number, catalog: string): Promise<string> => {
      const lines = Array.from({ length: Math.ceil(units / 50) }, () => 'x'.repeat(49));
      const file = pdfOf([linesAt(lines, { x: 50, y: 50 })], { catalog });
      return await extractor()
        .extract(() => Promise.resolve(file))
        .then(({ pages: read }) => `${read.length} pages`, reasonIn);
    };
    const form = '/AcroForm << /Fields [] /XFA 7 0 R >> /NeedsRendering true';
    const portfolio = '/Collection << /Type /Collection /View /D >>';
    expect(await told(1_000, form)).to.equal('xfa-form');
    expect(await told(1_500, form)).to.equal('1 pages');
    expect(await told(300, portfolio)).to.equal('portfolio');
    expect(await told(500, portfolio)).to.equal('1 pages');
  });

  it('works on so many at once, lets so many wait in their order, and refuses the next', async () => {
    const busy = extractor({ maxChildren: 1, maxWaiting: 2 });
    const [read, told]: [number[], string[]] = [[], []];
    // Only the first needs a process: what is no PDF is read in its turn, too, and refused by then.
    const work = [SOUND, NO_PDF, NO_PDF].map(async (bytes, index) => {
      const reading = busy.extract(() => {
        read.push(index);
        return Promise.resolve(bytes);
      });
      told.push(await reading.then(({ pages }) => `${pages.length} pages`, reasonIn));
    });
    expect(await rejectionOf(busy.extract(() => Promise.resolve(NO_PDF)))).to.be.instanceOf(ExtractionBusy);
    await Promise.all(work);
    expect(read).to.deep.equal([0, 1, 2]);
    expect(told).to.deep.equal(['2 pages', 'not-a-pdf', 'not-a-pdf']);
    expect(reasonIn(await rejectionOf(busy.extract(() => Promise.resolve(NO_PDF))))).to.equal('not-a-pdf');
  });

  it('stops what is under way and what waits, and takes nothing afterwards', async () => {
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

  it('leaves no child behind when the process is killed in the middle of one', async () => {
    const program = fileURLToPath(new URL('../support/extract-parent.js', import.meta.url));
    const parent = startChild(process.execPath, [program]);
    await parent.waitFor((lines) => lines.length > 0);
    const child = Number(parent.lines[0]);
    await parent.kill();
    await untilTrue(() => !isAlive(child));
  });
});

/** Why a file was refused, or the error in other words. */
function reasonIn(error: unknown): string {
  return error instanceof PdfRefused ? error.data.reason : String(error);
}

/** Whether a process has this id. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
