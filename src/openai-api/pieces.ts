/** Pieces of the final draft: the record alone determines where they are cut. */

/** Code points of a piece. Another number changes the sequence numbers of recorded runs. */
const PIECE = 256;

/** A text in pieces of 256 code points; the last one may be shorter. No piece of an empty text. */
export function piecesOf(text: string): readonly string[] {
  const points = Array.from(text);
  return Array.from({ length: Math.ceil(points.length / PIECE) }, (_, at) =>
    points.slice(at * PIECE, (at + 1) * PIECE).join(''),
  );
}
