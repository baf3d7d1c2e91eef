/** The lines of an export, out of its bytes, nothing forgiven: what is not as it was written is a difference. */
import { RunCorrupt } from '../../errors.js';

/** Longest line taken, in bytes: an append to the log is at most 512 KiB, each byte of it six in an escape. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Each line without its line feed.
 *
 * @throws {RunCorrupt} at a line that has no end, is too long or is not UTF-8
 */
export async function* linesIn(pieces: AsyncIterable<Uint8Array>, runId: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let seq = 0;
  let begun: Uint8Array[] = [];
  let bytes = 0;
  const damaged = (reason: string): RunCorrupt => new RunCorrupt({ runId, seq, reason });
  const keep = (piece: Uint8Array): void => {
    bytes += piece.length;
    if (bytes > MAX_LINE_BYTES) throw damaged(`its line is longer than ${MAX_LINE_BYTES} bytes`);
    if (piece.length > 0) begun.push(piece);
  };
  const line = (): string => {
    try {
      return decoder.decode(begun.length === 1 ? begun[0] : Buffer.concat(begun));
    } catch {
      throw damaged('its line is not UTF-8');
    }
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, from)) {
      keep(piece.subarray(from, end));
      yield line();
      [seq, begun, bytes, from] = [seq + 1, [], 0, end + 1];
    }
    keep(piece.subarray(from));
  }
  if (bytes > 0) throw damaged('its line is cut off');
}
