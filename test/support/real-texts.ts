/**
 * Real texts to search in, from the packages in node_modules, cut like pages of documents: first READMEs, change logs
 * and licences, which are English prose, then declarations and programs with their comments. Tests measure recall on
 * these, because random vectors all have the same distance from each other, and vectors of texts do not.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chunk } from '../../src/documents/chunk.js';

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
const KINDS = [/(?:\.md|licen[cs]e[^/]*)$/i, /\.d\.ts$/, /\.[cm]?js$/];
/** Most UTF-16 units read of a file, and fewest of a chunk. */
const FILE_UNITS = 400_000;
const SHORTEST = 200;

/** This many different chunks, or all that exist; always the same for the same packages. */
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

/** This many queries, each of 3 to 12 consecutive words of a chunk. */
export function realQueries(chunks: readonly string[], count: number, random: () => number): readonly string[] {
  const pick = (bound: number): number => Math.floor(random() * bound);
  return Array.from({ length: count }, () => {
    const words = (chunks[pick(chunks.length)] ?? '').match(/[\p{L}\p{N}'-]+/gu) ?? [];
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
