/**
 * Reading order of lines with right-to-left text, alone or mixed with left-to-right text. PDFs hold glyphs in any order,
 * so this sorts the pieces of a line by their places: a small part of the Unicode bidirectional algorithm (UAX #9), from
 * display order back to reading order.
 */
import { elementAt } from '../../system/element.js';

/** A piece of a line: a run, a segment or a character. Lengths in one unit. */
export interface Piece {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  readonly size: number;
}

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu;
const LETTER = /\p{L}/gu;
const DIGIT = /\p{Nd}/u;

/** Widest gap between the pieces of a phrase, and between those of a number, in ems. */
const WIDEST_SPACE = 2;
const TOUCH = 0.16;

/** Whether most of its letters are of a script that runs from right to left. */
export function isRightToLeft(text: string): boolean {
  const backwards = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  return backwards > 0 && backwards * 2 > (text.match(LETTER)?.length ?? 0);
}

/**
 * Whether a line runs from right to left, as its first and last letters do. If these differ, it runs as its page does.
 *
 * @param pieces from left to right
 */
export function isLineBackwards(pieces: readonly Pick<Piece, 'text'>[], isPageBackwards: boolean): boolean {
  const ends = [pieces.find(hasLetter), pieces.findLast(hasLetter)].map((piece) => isRightToLeft(piece?.text ?? ''));
  return ends[0] === ends[1] && pieces.some(hasLetter) ? ends[0] === true : isPageBackwards;
}

function hasLetter({ text }: Pick<Piece, 'text'>): boolean {
  return /\p{L}/u.test(text);
}

/**
 * Pieces of a line in reading order, in groups: the pieces of a group stand beside each other on the line.
 *
 * @param pieces from left to right
 */
export function inReadingOrder<T extends Piece>(pieces: readonly T[], isBackwards: boolean): readonly (readonly T[])[] {
  const groups = phrasesIn(pieces, isBackwards);
  if (isBackwards) return groups.toReversed();
  return groups.map((group) => (group.length === 1 ? group : inReadingOrder(group, true).flat()));
}

type Kind = 'backwards' | 'forwards' | 'number' | 'neutral';

function kindOf(piece: Piece): Kind {
  if (isRightToLeft(piece.text)) return 'backwards';
  if (hasLetter(piece)) return 'forwards';
  return DIGIT.test(piece.text) ? 'number' : 'neutral';
}

/** Pieces grouped where they run against their line; all others are groups of one. */
function phrasesIn<T extends Piece>(pieces: readonly T[], isBackwards: boolean): readonly (readonly T[])[] {
  const kinds = pieces.map(kindOf);
  const isPart = (kind: Kind): boolean =>
    isBackwards ? kind === 'forwards' || kind === 'number' : kind === 'backwards';
  const groups: T[][] = [];
  for (let from = 0; from < pieces.length;) {
    let end = from;
    if (isPart(elementAt(kinds, from))) {
      for (let next = from + 1; next < pieces.length && isJoined(pieces, kinds, next); next += 1) {
        if (isPart(elementAt(kinds, next))) end = next;
        else if (elementAt(kinds, next) === (isBackwards ? 'backwards' : 'forwards')) break;
      }
    }
    groups.push(pieces.slice(from, end + 1));
    from = end + 1;
  }
  return groups;
}

/** Whether a piece belongs to the phrase of the piece before it. */
function isJoined(pieces: readonly Piece[], kinds: readonly Kind[], index: number): boolean {
  const [before, piece] = [elementAt(pieces, index - 1), elementAt(pieces, index)];
  const isWord = [kinds[index - 1], kinds[index]].some((kind) => kind === 'forwards' || kind === 'backwards');
  return piece.left - before.right <= (isWord ? WIDEST_SPACE : TOUCH) * Math.max(before.size, piece.size);
}

/** Puts a text whose characters are in display order, from the left, into reading order. */
export function fromDisplayOrder(text: string): string {
  if (text.match(RIGHT_TO_LEFT) === null) return text;
  const characters = [...text].map((each, index) => ({ text: each, left: index, right: index + 1, size: 1 }));
  return inReadingOrder(characters, isLineBackwards(characters, isRightToLeft(text)))
    .flat()
    .map((each) => each.text)
    .join('');
}

const BRACKETS = ['()', '[]', '{}', '«»'] as const;

/** Turns the brackets of a right-to-left line that close before they open: many fonts name them by their shape. */
export function withBrackets(line: string): string {
  if (!isRightToLeft(line)) return line;
  return BRACKETS.reduce((text, pair) => {
    const [opening, closing] = [pair.charAt(0), pair.charAt(1)];
    const [first, last] = [text.indexOf(closing), text.lastIndexOf(opening)];
    if (first < 0 || last < first || text.indexOf(opening) < first) return text;
    return [...text].map((each) => (each === opening ? closing : each === closing ? opening : each)).join('');
  }, line);
}
