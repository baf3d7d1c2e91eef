/** The passages of many pages, cut without holding up the process. */
import type { Ambient } from '../ambient.js';
import { chunk, type Chunk } from './chunk.js';

/** UTF-16 units that are cut in one turn, about 2 ms; a page is never divided. */
const UNITS_AT_ONCE = 200_000;

/** As `chunk`, other work coming to its turn in between. */
export async function chunkedPages(
  pages: readonly { readonly page: number; readonly text: string }[],
  { after }: Pick<Ambient, 'after'>,
): Promise<readonly Chunk[]> {
  const chunks: Chunk[] = [];
  let units = 0;
  for (const each of pages) {
    for (const piece of chunk([each])) chunks.push(piece);
    units += each.text.length;
    if (units < UNITS_AT_ONCE) continue;
    units = 0;
    await new Promise<void>((resolve) => void after(0, resolve));
  }
  return chunks;
}
