/**
 * Puts lines with right-to-left text into reading order. A PDF holds glyphs in any order, so this starts from their
 * positions: a small part of the Unicode bidirectional algorithm (UAX #9), from display order back to reading order.
 */
import { elementAt } from '../../system/element.js';

/** A piece of a line: a run, a segment or a character. All lengths have the same unit. */
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

/** Whether most letters of a text belong to a right-to-left script. */
export function isMostlyRightToLeft(text: string): boolean {
  const rightToLeft = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  return rightToLeft > 0 && rightToLeft * 2 > (text.match(LETTER)?.length ?? 0);
}

/**
 * The direction of a line: that of its first and last letters, or that of its page if these differ.
 *
 * @param pieces from left to right
 */
export function isLineRightToLeft(pieces: readonly Pick<Piece, 'text'>[], isPageRightToLeft: boolean): boolean {
  const ends = [pieces.find(hasLetter), pieces.findLast(hasLetter)].map((piece) =>
    isMostlyRightToLeft(piece?.text ?? ''),
  );
  return ends[0] === ends[1] && pieces.some(hasLetter) ? ends[0] === true : isPageRightToLeft;
}

function hasLetter({ text }: Pick<Piece, 'text'>): boolean {
  return /\p{L}/u.test(text);
}

/**
 * The pieces of a line in reading order, in groups of neighbours on the line.
 *
 * @param pieces from left to right
 */
export function inReadingOrder<T extends Piece>(
  pieces: readonly T[],
  isRightToLeft: boolean,
): readonly (readonly T[])[] {
  const groups = phrasesIn(pieces, isRightToLeft);
  if (isRightToLeft) return groups.toReversed();
  return groups.map((group) => (group.length === 1 ? group : inReadingOrder(group, true).flat()));
}

type Kind = 'right-to-left' | 'left-to-right' | 'number' | 'neutral';

function kindOf(piece: Piece): Kind {
  if (isMostlyRightToLeft(piece.text)) return 'right-to-left';
  if (hasLetter(piece)) return 'left-to-right';
  return DIGIT.test(piece.text) ? 'number' : 'neutral';
}

/** Groups the pieces of each phrase that runs against the direction of the line. Every other piece is its own group. */
function phrasesIn<T extends Piece>(pieces: readonly T[], isRightToLeft: boolean): readonly (readonly T[])[] {
  const kinds = pieces.map(kindOf);
  const isPart = (kind: Kind): boolean =>
    isRightToLeft ? kind === 'left-to-right' || kind === 'number' : kind === 'right-to-left';
  const groups: T[][] = [];
  for (let from = 0; from < pieces.length;) {
    let end = from;
    if (isPart(elementAt(kinds, from))) {
      for (let next = from + 1; next < pieces.length && isJoined(pieces, kinds, next); next += 1) {
        if (isPart(elementAt(kinds, next))) end = next;
        else if (elementAt(kinds, next) === (isRightToLeft ? 'right-to-left' : 'left-to-right')) break;
      }
    }
    groups.push(pieces.slice(from, end + 1));
    from = end + 1;
  }
  return groups;
}

/** Whether a piece belongs to the phrase of the previous piece. */
function isJoined(pieces: readonly Piece[], kinds: readonly Kind[], index: number): boolean {
  const [before, piece] = [elementAt(pieces, index - 1), elementAt(pieces, index)];
  const isWord = [kinds[index - 1], kinds[index]].some((kind) => kind === 'left-to-right' || kind === 'right-to-left');
  return piece.left - before.right <= (isWord ? WIDEST_SPACE : TOUCH) * Math.max(before.size, piece.size);
}

/** Converts a text from display order, from the left, to reading order. */
export function fromDisplayOrder(text: string): string {
  if (text.match(RIGHT_TO_LEFT) === null) return text;
  const characters = [...text].map((each, index) => ({ text: each, left: index, right: index + 1, size: 1 }));
  return inReadingOrder(characters, isLineRightToLeft(characters, isMostlyRightToLeft(text)))
    .flat()
    .map((each) => each.text)
    .join('');
}

const BRACKETS = ['()', '[]', '{}', '«»'] as const;

/** Mirrors the brackets of a right-to-left line that close before they open: many fonts name brackets by their shape. */
export function withMirroredBrackets(line: string): string {
  if (!isMostlyRightToLeft(line)) return line;
  return BRACKETS.reduce((text, pair) => {
    const [opening, closing] = [pair.charAt(0), pair.charAt(1)];
    const [first, last] = [text.indexOf(closing), text.lastIndexOf(opening)];
    if (first < 0 || last < first || text.indexOf(opening) < first) return text;
    return [...text].map((each) => (each === opening ? closing : each === closing ? opening : each)).join('');
  }, line);
}
