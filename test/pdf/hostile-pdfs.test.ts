import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { nodeSystem } from '../../src/system/system.js';
import { EXTRACT_LIMITS } from '../../src/pdf/extract.js';
import { pdfExtractor } from '../../src/pdf/extract.js';
import { ExtractionTimedOut, PdfRefused } from '../../src/pdf/errors.js';
import { watchLoopDelay } from '../support/loop-delay.js';
import { childPids, watchChildren } from '../support/child-watch.js';
import { hostilePdfs, mutatedPdfs, type HostilePdf } from '../support/hostile-pdfs.js';
import { IS_SOAK } from '../support/soak.js';

const MUTATED = IS_SOAK ? 200 : 1;
/** All handmade PDFs, or one of each kind except counts, which another test uploads. */
const SAMPLE = [...['bomb of a string', 'arrays in arrays'], ...['no PDF', 'lengths too large', 'aes-128, a password']];
/** The shorter the time, the more extractions end by the limit, which this test checks. */
const LIMITS = IS_SOAK ? EXTRACT_LIMITS : { ...EXTRACT_LIMITS, timeoutMs: 2_000, maxChildren: 2 };
/** How much memory a child may allocate between two checks of its memory. */
const MEMORY_SLACK = 150 * 1024 * 1024;
/**
 * How long a verdict may take on the clock: both parsers use all their processor time, and each child process is
 * started, killed and reaped. A child process without processor time is ended after eight times the limit.
 */
const VERDICT_MS = IS_SOAK ? 2 * LIMITS.timeoutMs + 1_000 : 2 * 8 * LIMITS.timeoutMs + 30_000;

describe('Extraction of hostile PDFs', () => {
  it('ends within its limits of time and memory, leaves no files, and does not block the service', async () => {
    const byHand = hostilePdfs().filter(({ name }) => IS_SOAK || SAMPLE.includes(name));
    const files = [...byHand, ...mutatedPdfs(6, MUTATED)];
    const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: LIMITS });
    const here = readdirSync('.');
    const earlier = childPids();
    const children = watchChildren();
    const delay = watchLoopDelay();

    const queue = [...files];
    const verdicts: { readonly file: HostilePdf; readonly verdict: string; readonly ms: number }[] = [];
    const work = async (): Promise<void> => {
      for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
        const from = performance.now();
        verdicts.push({ file, verdict: await verdictOn(file.bytes), ms: performance.now() - from });
      }
    };
    const verdictOn = async (bytes: Buffer): Promise<string> => {
      try {
        return `text by ${(await extractor.extract(() => Promise.resolve(bytes))).parser}`;
      } catch (error) {
        if (error instanceof PdfRefused) return error.data.reason;
        if (error instanceof ExtractionTimedOut) return 'timed-out';
        throw error;
      }
    };
    await Promise.all(Array.from({ length: LIMITS.maxChildren }, work));
    const delayMs = delay.p99Ms();
    children.stop();
    if (IS_SOAK) process.stdout.write(summaryOf(verdicts, children.mostMemoryBytes(), delayMs));

    expect(byHand.length).to.be.at.least(SAMPLE.length);
    expect(verdicts).to.have.length(files.length);
    for (const { file, verdict, ms } of verdicts) {
      expect(ms, `${file.name}: ${verdict}`).to.be.below(VERDICT_MS);
      // A busy machine may be too slow for the short time.
      const isInTime = IS_SOAK || verdict !== 'timed-out';
      if (file.reason !== undefined && isInTime) expect(verdict, file.name).to.equal(file.reason);
    }
    expect(children.mostMemoryBytes()).to.be.below(LIMITS.maxMemoryMb * 1024 * 1024 + MEMORY_SLACK);
    if (IS_SOAK) expect(delayMs, 'event-loop delay p99').to.be.below(50);
    // The system also attributes pages that other test files write to a child process.
    if (IS_SOAK) expect(children.mostWrittenBytes(), 'bytes written').to.equal(0);
    expect(readdirSync('.')).to.deep.equal(here);
    expect(childPids().filter((pid) => !earlier.includes(pid))).to.deep.equal([]);
  });
});

function summaryOf(
  verdicts: readonly { readonly file: HostilePdf; readonly verdict: string; readonly ms: number }[],
  memory: number,
  delayMs: number,
): string {
  const counts = new Map<string, number>();
  for (const { verdict } of verdicts) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  const slowest = verdicts.toSorted((one, other) => other.ms - one.ms).slice(0, 5);
  return (
    `    ${verdicts.length} files: ${[...counts].map(([verdict, count]) => `${count} ${verdict}`).join(', ')}\n` +
    `    slowest: ${slowest.map(({ file, ms, verdict }) => `${file.name} ${Math.round(ms)} ms (${verdict})`).join(', ')}\n` +
    `    most memory of a child ${Math.round(memory / 1_048_576)} MB, event-loop delay p99 ${delayMs.toFixed(1)} ms\n`
  );
}
