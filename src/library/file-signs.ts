/** What the bytes of a file say before anybody parses them. */

/** Bytes from the start in which the header must stand: some files have other bytes before it (ISO 32000-1, annex H). */
const HEADER_WITHIN = 1_024;
/** Page counts looked at: page trees have one a node, and a hostile file as many as fit. */
const MOST_COUNTS = 1_000;

/** Whether the file says that it is a PDF. */
export function isPdf(bytes: Uint8Array): boolean {
  return view(bytes.subarray(0, HEADER_WITHIN)).includes('%PDF-', 0, 'latin1');
}

/**
 * Whether the file must not be given to pdf2json: it may be encrypted, of which pdf2json says nothing where it can
 * decipher it, or says that it has more pages than allowed, for each of which pdf2json makes a promise before the first.
 * Text that only looks like it costs nothing: the second parser decides.
 */
export function isForSecondParser(bytes: Uint8Array, { maxPages }: { maxPages: number }): boolean {
  const file = view(bytes);
  if (file.includes('/Encrypt', 0, 'latin1')) return true;
  let at = file.indexOf('/Count', 0, 'latin1');
  for (let seen = 0; at >= 0 && seen < MOST_COUNTS; seen += 1) {
    const digits = /^\s*\+?(\d+)/.exec(file.toString('latin1', at + 6, at + 40))?.[1];
    if (Number(digits ?? 0) > maxPages) return true;
    at = file.indexOf('/Count', at + 6, 'latin1');
  }
  return false;
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
