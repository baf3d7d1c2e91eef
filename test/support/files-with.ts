import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The files of a folder that hold a word, in lower case. */
export function filesWith(folder: string, word: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file, 'latin1').toLowerCase().includes(word));
}
