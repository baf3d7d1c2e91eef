import { closeSync, openSync, readSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes read at once: a log may be larger than the longest string. */
const PART_BYTES = 64 * 1024 * 1024;

/** The files of a folder that hold a word, in lower case. */
export function filesWith(folder: string, word: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => holds(file, word));
}

function holds(file: string, word: string): boolean {
  const part = Buffer.allocUnsafe(PART_BYTES);
  const opened = openSync(file, 'r');
  try {
    let text = '';
    for (let bytes = readSync(opened, part); bytes > 0; bytes = readSync(opened, part)) {
      // A word may begin in the part before.
      text = text.slice(-word.length) + part.toString('latin1', 0, bytes).toLowerCase();
      if (text.includes(word)) return true;
    }
    return false;
  } finally {
    closeSync(opened);
  }
}
