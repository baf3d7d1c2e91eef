/** Splits the bytes of an export into lines, strictly: any deviation from the written form is a difference. */
import { RunCorrupt } from '../../errors.js';

/** Longest line taken, in bytes: an append to the log is at most 512 KiB, each byte of it six in an escape. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Each line without its line feed.
 *
 * @throws {RunCorrupt} at a line that has no end, is too long or is not UTF-8
 */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>, runId: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let seq = 0;
  let partial: Uint8Array[] = [];
  let bytes = 0;
  const corruptAt = (reason: string): RunCorrupt => new RunCorrupt({ runId, seq, reason });
  const keep = (chunk: Uint8Array): void => {
    bytes += chunk.length;
    if (bytes > MAX_LINE_BYTES) throw corruptAt(`its line is longer than ${MAX_LINE_BYTES} bytes`);
    if (chunk.length > 0) partial.push(chunk);
  };
  const line = (): string => {
    try {
      return decoder.decode(partial.length === 1 ? partial[0] : Buffer.concat(partial));
    } catch {
      throw corruptAt('its line is not UTF-8');
    }
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      keep(chunk.subarray(from, end));
      yield line();
      [seq, partial, bytes, from] = [seq + 1, [], 0, end + 1];
    }
    keep(chunk.subarray(from));
  }
  if (bytes > 0) throw corruptAt('its line is cut off');
}
