/** Digests of texts, so that an answer that names many texts stays small. */
import { codePoints } from '../graph/limits.js';

/** Largest number of code points of a line. */
const MAX_LINE_CHARS = 120;

/** A text by its hash, its length in code points and its first line, as schemas/genealogy.json has it. */
export interface Digest {
  readonly hash: string;
  readonly characters: number;
  readonly first_line: string;
}

/** The digest of a text, or of a list of texts as one. */
export function digest(texts: readonly string[], sha256: (text: string) => string): Digest {
  const all = texts.join('\n');
  return { hash: sha256(all), characters: codePoints(all), first_line: firstLine(texts[0] ?? '') };
}

/** The beginning of a text's first line that is not empty. */
export function firstLine(text: string): string {
  return clipped(/\S.*/.exec(text)?.[0].trimEnd() ?? '', MAX_LINE_CHARS);
}

/** The first code points of a text. */
export function clipped(text: string, chars: number): string {
  return text.length <= chars ? text : [...text.slice(0, 2 * chars)].slice(0, chars).join('');
}
