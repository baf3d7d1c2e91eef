/**
 * A genealogy as JSON text, in pieces. A run that is reworked a thousand times names a thousand feedbacks at its last
 * drafts, each list the one before and one more: what lists have in common is written once, and copied.
 */
import { beginsWith, elementAt } from '../system/element.js';
import type { Genealogy, GenealogyDraft } from '../generated/schemas.js';

/** The pieces of the text, a draft each. */
export async function* genealogyTexts(genealogy: Genealogy): AsyncGenerator<string> {
  let before = '{';
  for (const [name, value] of Object.entries(genealogy)) {
    yield `${before}${JSON.stringify(name)}:`;
    if (value === genealogy.drafts) yield* draftTexts(genealogy.drafts);
    else yield JSON.stringify(value);
    before = ',';
  }
  yield '}';
}

function* draftTexts(drafts: readonly GenealogyDraft[]): Generator<string> {
  const feedback = listTexts(drafts.map(({ parents }) => parents.feedback));
  let before = '[';
  for (const [index, { parents, ...draft }] of drafts.entries()) {
    const given = `{"drafts":${JSON.stringify(parents.drafts)},"feedback":[${elementAt(feedback, index)}]}`;
    yield `${before}${JSON.stringify(draft).slice(0, -1)},"parents":${given}}`;
    before = ',';
  }
  yield drafts.length === 0 ? '[]' : ']';
}

/** The items of lists as JSON, without brackets. Works from the last list backwards: most earlier lists are prefixes of it. */
function listTexts(lists: readonly (readonly string[])[]): readonly string[] {
  const texts: string[] = [];
  let whole = writtenOut([]);
  for (const list of [...lists].reverse()) {
    if (!beginsWith(whole.list, list)) whole = writtenOut(list);
    // A part of the same text, and no copy.
    texts.push(whole.text.slice(0, whole.ends[list.length]));
  }
  return texts.reverse();
}

interface WrittenOut {
  readonly list: readonly string[];
  readonly text: string;
  /** How long the text of so many items is. */
  readonly ends: readonly number[];
}

function writtenOut(list: readonly string[]): WrittenOut {
  const items = list.map((item) => JSON.stringify(item));
  const ends = [0];
  let end = -1;
  for (const item of items) ends.push((end += item.length + 1));
  return { list, text: items.join(','), ends };
}
