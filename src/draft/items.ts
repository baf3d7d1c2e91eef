/** The items of a draft: a council with `for_each` has a run for each. */
import type { ForEach } from '../generated/schemas.js';
import { tokensOf } from './markdown.js';

export interface DraftItem {
  /** One line, at most 200 characters. */
  readonly title: string;
  readonly text: string;
}

/** The items of a draft, and the level of the headings under which their results stand, from 1. */
export interface DraftItems {
  readonly items: readonly DraftItem[];
  readonly level: number;
  /** Why the draft cannot be read; absent if it can. */
  readonly fault?: string;
}

export type ItemsOf = (draft: string, by: ForEach) => DraftItems;

const MAX_TITLE_CHARS = 200;
/** Level of headings of items that are no sections. */
const LEVEL = 2;

export const itemsOf: ItemsOf = (draft, by) => {
  switch (by) {
    case 'headings':
      return sectionsOf(draft);
    case 'lines':
      return { items: linesOf(draft), level: LEVEL };
    case 'json':
      return elementsOf(draft);
    default:
      return by satisfies never;
  }
};

/** The sections of the highest heading level that stands more than once, with their headings. */
function sectionsOf(draft: string): DraftItems {
  const tokens = tokensOf(draft);
  const headings = tokens.flatMap(({ type, tag, level, map }, at) => {
    // A heading in a list or a quotation begins no section.
    if (type !== 'heading_open' || level !== 0 || map === null) return [];
    return [{ level: Number(tag.slice(1)), title: tokens[at + 1]?.content ?? '', line: map[0] }];
  });
  const level = [1, 2, 3, 4, 5, 6].find((each) => headings.filter((heading) => heading.level === each).length > 1);
  if (level === undefined) return { items: [], level: LEVEL };
  const lines = draft.split(/\r\n|\n|\r/);
  const ends = headings.filter((each) => each.level <= level);
  const items = ends.flatMap(({ line, title, ...heading }, at) => {
    if (heading.level !== level) return [];
    const text = lines
      .slice(line, ends[at + 1]?.line)
      .join('\n')
      .trim();
    return [{ title: titleOf(title), text }];
  });
  return { items, level };
}

/** The lines that hold more than a list mark, without it. */
function linesOf(draft: string): readonly DraftItem[] {
  return draft.split(/\r\n|\n|\r/).flatMap((line) => {
    const text = line.replace(/^\s*(?:(?:[-*+•]|\d{1,9}[.)])(?:\s+|$))?(?:\[[ xX]\]\s+)?/u, '').trim();
    return text === '' ? [] : [{ title: titleOf(text), text }];
  });
}

/** The elements of the array that a draft is, or that is the only one in the object that it is. */
function elementsOf(draft: string): DraftItems {
  const list = listIn(jsonOf(draft));
  if (list === null) return { items: [], level: LEVEL, fault: 'The draft is no JSON array' };
  return { items: list.map(elementItem).filter(({ text }) => text.trim() !== ''), level: LEVEL };
}

function listIn(value: unknown): readonly unknown[] | null {
  if (Array.isArray(value)) return value as unknown[];
  const fields: unknown[] = typeof value === 'object' && value !== null ? Object.values(value) : [];
  const lists = fields.filter((each): each is unknown[] => Array.isArray(each));
  return lists.length === 1 ? (lists[0] ?? null) : null;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function elementItem(element: unknown, index: number): DraftItem {
  if (typeof element === 'string') return { title: titleOf(element), text: element };
  const text = JSON.stringify(element);
  const named = typeof element === 'object' && element !== null ? Object.entries(element) : [];
  const title = NAMES.flatMap((name) => named.filter(([key, value]) => key === name && typeof value === 'string'))[0];
  return { title: titleOf(String(title?.[1] ?? `Item ${index + 1}`)), text };
}

/** The fields of an element that may name it, the first first. */
const NAMES = ['title', 'name', 'heading', 'id'];

function titleOf(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  const characters = [...line.slice(0, 2 * MAX_TITLE_CHARS + 2)];
  return characters.length > MAX_TITLE_CHARS ? `${characters.slice(0, MAX_TITLE_CHARS - 1).join('')}…` : line;
}
