/**
 * Real texts to search in: what the packages in node_modules come with, cut as pages of documents are. READMEs, change
 * logs and licences first, which are English prose; then declarations and programs, whose comments are. What is found
 * near is judged on these: vectors of random numbers are all equally far from each other, as those of texts never are.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chunk } from '../../src/documents/chunk.js';

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
const KINDS = [/(?:\.md|licen[cs]e[^/]*)$/i, /\.d\.ts$/, /\.[cm]?js$/];
/** UTF-16 units of a file that are read, and that a passage has at least. */
const FILE_UNITS = 400_000;
const SHORTEST = 200;

/** So many different passages, or all there are; always the same ones while the packages are. */
export function realChunks(limit: number): readonly string[] {
  const found = new Set<string>();
  const files = filesUnder(MODULES);
  for (const kind of KINDS) {
    for (const file of files.filter((each) => kind.test(each) && !each.includes('.min.'))) {
      if (found.size >= limit) return [...found].slice(0, limit);
      const text = readFileSync(file, 'utf8').slice(0, FILE_UNITS).replaceAll('\0', ' ');
      for (const each of chunk([{ page: 1, text }])) if (each.text.length >= SHORTEST) found.add(each.text);
    }
  }
  return [...found].slice(0, limit);
}

/** So many queries as somebody would put them: 3 to 12 words in a row out of one of the passages. */
export function realQueries(passages: readonly string[], count: number, random: () => number): readonly string[] {
  const pick = (bound: number): number => Math.floor(random() * bound);
  return Array.from({ length: count }, () => {
    const words = (passages[pick(passages.length)] ?? '').match(/[\p{L}\p{N}'-]+/gu) ?? [];
    const from = pick(Math.max(1, words.length - 12));
    return words.slice(from, from + 3 + pick(10)).join(' ');
  });
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
