/**
 * Counts how many quotations of real PDFs are judged right: `node dist/test/bench/quotations.js FOLDER [COUNT]`. It takes
 * quotations of 8 to 30 words from the text of the pages, half of them over the end of a page where a sentence runs over it,
 * writes each into a draft, and judges it as it is and with one word changed.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { quotationJudge } from '../../src/audit/quotations.js';
import { citationsIn } from '../../src/draft/quotations.js';
import { pdfExtractor } from '../../src/pdf/extract.js';
import { nodeSystem } from '../../src/system/system.js';

interface Quotation {
  readonly pages: readonly string[];
  readonly at: number;
  readonly words: readonly string[];
  readonly kind: 'within a line' | 'over a line end' | 'over a page end';
}

/** Numbers from 0 to 1, the same in each run. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
}

const random = randomNumbers(20260101);
const one = <T>(items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)];
const wordsIn = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');
const isProse = (line: string): boolean => /^[\p{L}\p{P}\s]{40,}$/u.test(line);

/** Some words from a run of lines of prose. */
function withinPage(pages: readonly string[]): Quotation | null {
  const at = Math.floor(random() * pages.length);
  const lines = (pages[at] ?? '').split('\n');
  const first = Math.floor(random() * lines.length);
  const prose = lines.slice(first, first + 3);
  if (prose.length < 3 || !prose.every(isProse)) return null;
  const count = 8 + Math.floor(random() * 23);
  const from = Math.floor(random() * wordsIn(prose[0] ?? '').length);
  const words = wordsIn(prose.join('\n')).slice(from, from + count);
  const isOneLine = from + count <= wordsIn(prose[0] ?? '').length;
  return words.length < 8 ? null : { pages, at, words, kind: isOneLine ? 'within a line' : 'over a line end' };
}

/** Words of a sentence that runs over the end of a page: the last line of prose has no end, the next begins small. */
function overPageEnd(pages: readonly string[]): Quotation | null {
  const at = Math.floor(random() * (pages.length - 1));
  const [last, next] = [(pages[at] ?? '').split('\n'), (pages[at + 1] ?? '').split('\n')];
  const end = last.findLast(isProse);
  const begin = next.find(isProse);
  if (end === undefined || begin === undefined || !/[\p{Ll},]$/u.test(end) || !/^\p{Ll}/u.test(begin)) return null;
  const half = () => 4 + Math.floor(random() * 8);
  const words = [...wordsIn(end).slice(-half()), ...wordsIn(begin).slice(0, half())];
  return { pages, at: at + Math.round(random()), words, kind: 'over a page end' };
}

/** With one word of at least 4 letters in place of another. */
function changed({ words, pages, at }: Quotation): readonly string[] | null {
  const place = one([...words.keys()].filter((each) => /^\p{L}{4,}$/u.test(words[each] ?? '')));
  const other = one(wordsIn(pages[at] ?? '').filter((word) => /^\p{Ll}{4,}$/u.test(word)));
  if (place === undefined || other === undefined || other.toLowerCase() === words[place]?.toLowerCase()) return null;
  return words.map((word, index) => (index === place ? other : word));
}

async function verdictOf({ pages, at }: Quotation, words: readonly string[]): Promise<string> {
  const [cited] = citationsIn(`The paper says “${words.join(' ')}” [4f2a9c01:${at + 1}].`, new Set());
  if (cited?.quoted === null || cited === undefined) return 'not seen';
  const judge = await quotationJudge(
    { text: pages[at] ?? '', before: pages[at - 1], after: pages[at + 1] },
    async () => undefined,
  );
  return judge(cited.quoted);
}

async function pagesIn(file: string, read: ReturnType<typeof pdfExtractor>): Promise<readonly string[] | null> {
  try {
    return (await read.extract(() => Promise.resolve(readFileSync(file)))).pages.map(({ text }) => text);
  } catch {
    return null;
  }
}

const [folder = '.', count = '1000'] = process.argv.slice(2);
const reader = pdfExtractor({ system: nodeSystem(), pid: process.pid });
const documents: (readonly string[])[] = [];
for (const name of readdirSync(folder).filter((each) => each.endsWith('.pdf'))) {
  const pages = await pagesIn(join(folder, name), reader);
  if (pages !== null && pages.length > 1) documents.push(pages);
}
await reader.stop();
console.log(`${documents.length} documents, ${documents.reduce((sum, pages) => sum + pages.length, 0)} pages`);

const counts = new Map<string, number>();
for (let taken = 0, tries = 0; taken < Number(count) && tries < 1_000_000; tries += 1) {
  const pages = one(documents) ?? [];
  const quotation = taken % 2 === 0 ? withinPage(pages) : overPageEnd(pages);
  const other = quotation === null ? null : changed(quotation);
  if (quotation === null || other === null) continue;
  taken += 1;
  for (const [form, words] of [
    ['true', quotation.words],
    ['changed', other],
  ] as const) {
    const verdict = await verdictOf(quotation, words);
    const key = `${quotation.kind}, ${form}: ${verdict}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    const isWrong = form === 'true' ? !['exact', 'near'].includes(verdict) : verdict !== 'missing';
    if (isWrong && process.env['SHOW'] !== undefined) console.log(key, '|', words.join(' '));
  }
}
for (const [key, number] of [...counts].sort()) console.log(`${key} ${number}`);
