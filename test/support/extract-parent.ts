/** A process whose child extracts an endless PDF: `node extract-parent.js`. Prints the child's process id. */
import { nodeSystem } from '../../src/system/system.js';
import { pdfExtractor } from '../../src/pdf/extract.js';
import { EXTRACT_LIMITS } from '../../src/pdf/extract.js';
import { childPids } from './child-watch.js';
import { endlessPdf } from './hostile-pdfs.js';

const limits = { ...EXTRACT_LIMITS, timeoutMs: 600_000, maxMemoryMb: 4_000 };
const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits });
void extractor.extract(() => Promise.resolve(endlessPdf()));
const timer = setInterval(() => {
  const [pid] = childPids();
  if (pid === undefined) return;
  process.stdout.write(`${pid}\n`);
  clearInterval(timer);
}, 10);
