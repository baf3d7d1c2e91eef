/** Limits of the extraction of one file, and of concurrent files. */

export interface ExtractLimits {
  /** Of the file. */
  readonly maxBytes: number;
  readonly maxPages: number;
  /** UTF-16 code units of all pages. */
  readonly maxTextUnits: number;
  /** Wall-clock milliseconds for one file, both parsers together, from the start of the first. */
  readonly timeoutMs: number;
  /** Megabytes of resident memory of a child, watched by the child itself. */
  readonly maxMemoryMb: number;
  /** Megabytes of a child's JavaScript heap. */
  readonly maxHeapMb: number;
  /** Children at once. */
  readonly maxChildren: number;
  /** Files that may wait for a child, on the disk; one more is refused. */
  readonly maxWaiting: number;
}

/**
 * The defaults. Real files of 350 pages take 2 s and 150 MB. A book of 5,000 pages has 12 million code units; what is
 * longer is refused and not cut, so that nobody searches half a document unknowingly. With one at work, as many wait as
 * uploads are let in (http/routes/documents.ts), so a file that was sent is not refused because of earlier ones.
 */
export const EXTRACT_LIMITS: ExtractLimits = {
  maxBytes: 50 * 1024 * 1024,
  maxPages: 5_000,
  maxTextUnits: 16_000_000,
  timeoutMs: 15_000,
  maxMemoryMb: 768,
  maxHeapMb: 512,
  maxChildren: 1,
  maxWaiting: 7,
};
