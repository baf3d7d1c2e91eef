/** What the bytes of a file say before anybody parses them. */

/** Bytes from the start in which the header must stand: some files have other bytes before it (ISO 32000-1, annex H). */
const HEADER_WITHIN = 1_024;

/** Whether the file says that it is a PDF. */
export function isPdf(bytes: Uint8Array): boolean {
  return view(bytes.subarray(0, HEADER_WITHIN)).includes('%PDF-', 0, 'latin1');
}

/**
 * Whether the file may be encrypted. pdf2json must not be given it, which says nothing where it can decipher it; a text
 * that only looks like it costs no more than the second attempt.
 */
export function mentionsEncryption(bytes: Uint8Array): boolean {
  return view(bytes).includes('/Encrypt', 0, 'latin1');
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
