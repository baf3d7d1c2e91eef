/** Colours for a terminal, none for what is not one. */

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof STYLES;
/** The text in a style, where there are styles. */
export type Paint = (style: Style, text: string) => string;

export interface Look {
  readonly isTerminal: boolean;
  /** `NO_COLOR` (no-color.org): any text but the empty one takes colours away. */
  readonly noColor: string | undefined;
  /** `TERM`. */
  readonly term: string | undefined;
}

export function paintFor({ isTerminal, noColor = '', term }: Look): Paint {
  if (!isTerminal || noColor !== '' || term === 'dumb') return (_, text) => text;
  return (style, text) => `\x1b[${STYLES[style][0]}m${text}\x1b[${STYLES[style][1]}m`;
}
