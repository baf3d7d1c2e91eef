/** Checks on the bytes of a file before it is parsed. */

/**
 * Bytes from the start in which the header must stand: some files have other bytes before it (ISO 32000-1, annex H).
 */
const HEADER_WITHIN = 1_024;

/** Whether the file has a PDF header. */
export function isPdf(bytes: Uint8Array): boolean {
  return view(bytes.subarray(0, HEADER_WITHIN)).includes('%PDF-', 0, 'latin1');
}

/**
 * Whether the file may be encrypted. Such a file is not given to pdf2json, which silently reads what it can decipher; a
 * false positive only costs the second attempt.
 */
export function mentionsEncryption(bytes: Uint8Array): boolean {
  return view(bytes).includes('/Encrypt', 0, 'latin1');
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
