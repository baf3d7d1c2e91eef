/** How fast text comes out of PDFs, and what that costs the service beside it. */
import { nodeSystem } from '../../src/system/system.js';
import { chunk } from '../../src/documents/chunk.js';
import { EXTRACT_LIMITS } from '../../src/pdf/extract.js';
import { pdfExtractor, type PdfExtractor } from '../../src/pdf/extract.js';
import { linesAt, pdfOf, type PlacedText } from '../support/pdf-writer.js';
import { figure, type Figure, type Part } from './figure.js';
import { watchLoopDelay } from './loop-delay.js';

const LINE = 'A council of agents reads what it is given, ';
/** Lines of each of the two columns of a page. */
const LINES = 50;
/** How long it takes is what is measured. */
const UNHURRIED = { ...EXTRACT_LIMITS, timeoutMs: 120_000, maxMemoryMb: 2_048 };

export const extractionPart: Part = {
  name: 'extraction',
  method: ({ pdfPages }) =>
    `Text of a PDF of ${pdfPages} pages, each of two columns of ${LINES} lines drawn word by word, child process and both ` +
    'pipes included, read by the first parser, and by both (one page is blank, so that the second is asked). The event ' +
    'loop is the one that waits.',
  async measure({ rounds, pdfPages }) {
    const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: UNHURRIED });
    try {
      const full = Array.from({ length: pdfPages }, (_, index) => pageOf(index));
      return [
        ...(await measured('first parser', pdfOf(full), extractor, rounds)),
        ...(await measured('both parsers', pdfOf([...full.slice(1), []]), extractor, rounds)),
        ...(await chunking(pdfOf(full), extractor, rounds)),
      ];
    } finally {
      await extractor.stop();
    }
  },
};

async function measured(
  name: string,
  pdf: Buffer,
  extractor: PdfExtractor,
  rounds: number,
): Promise<readonly Figure[]> {
  const speeds: number[] = [];
  const delays: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const delay = watchLoopDelay();
    const from = performance.now();
    const { pages } = await extractor.extract(() => Promise.resolve(pdf));
    speeds.push((pages.length / (performance.now() - from)) * 1_000);
    delays.push(delay.p99Ms());
  }
  return [
    figure(`extraction, ${name}: pages`, '/s', speeds),
    figure(`extraction, ${name}: event-loop delay p99`, 'ms', delays, { atMost: 50 }),
  ];
}

async function chunking(pdf: Buffer, extractor: PdfExtractor, rounds: number): Promise<readonly Figure[]> {
  const { pages } = await extractor.extract(() => Promise.resolve(pdf));
  const speeds = Array.from({ length: rounds }, () => {
    const from = performance.now();
    chunk(pages);
    return (pages.length / (performance.now() - from)) * 1_000;
  });
  return [figure('extraction: pages cut into passages', '/s', speeds)];
}

function pageOf(number: number): readonly PlacedText[] {
  const lines = Array.from({ length: LINES }, (_, index) => `${LINE}${number * LINES + index}`);
  return [40, 310].flatMap((left) =>
    linesAt(lines, { x: left, y: 80 }, 14).flatMap(({ text, y }) =>
      [...text.matchAll(/\S+/g)].map(({ 0: word, index }) => ({ text: word, x: left + index * 5, y })),
    ),
  );
}
