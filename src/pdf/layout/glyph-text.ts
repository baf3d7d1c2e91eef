/** Normalises the characters of a PDF, where fonts and Unicode differ. */

/** Latin and Armenian ligatures, and radicals that CJK fonts hand out in place of the ideographs they look like. */
const COMPATIBLE = /[\uFB00-\uFB06\uFB13-\uFB17\u2E80-\u2FD5]/gu;
/** Spaces of all widths, and characters that separate lines or pages inside a run. */
const SPACE = /[\s\u00A0\u2000-\u200A\u202F\u205F\u3000]+/gu;
/**
 * Nothing to read: controls, zero-width marks, byte-order mark, noncharacters. Joiners stay, some scripts need them.
 */
const UNREADABLE = /[\u0000-\u0008\u000E-\u001F\u007F-\u009F\u200B\u2060\uFEFF\uFFFE\uFFFF]/gu;
/** The bullet of Symbol fonts, in the area for private use. */
const SYMBOL_BULLET = /\uF0B7/gu;
/**
 * A free-standing accent before its letter, as TeX sets it. The grave accent, the circumflex and the tilde are left
 * out in their ASCII forms: they are punctuation of their own.
 */
const ACCENT_THEN_LETTER = /([\u00B4\u00A8\u02C6\u02DC\u02C7\u02D8\u02DA\u02DD\u00AF]) ?(\p{L})/gu;
const COMBINING: Readonly<Record<string, string>> = {
  '\u00B4': '\u0301',
  '\u00A8': '\u0308',
  '\u02C6': '\u0302',
  '\u02DC': '\u0303',
  '\u02C7': '\u030C',
  '\u02D8': '\u0306',
  '\u02DA': '\u030A',
  '\u02DD': '\u030B',
  '\u00AF': '\u0304',
};

/**
 * The text of a line: ligatures and radicals taken apart, accents put on their letters, every run of spaces one space,
 * tabs kept, nothing unreadable, well-formed UTF-16 in canonical composition (NFC).
 */
export function readable(line: string): string {
  return line
    .split('\t')
    .map((cell) => cell.replace(SPACE, ' ').trim())
    .filter((cell) => cell !== '')
    .join('\t')
    .replace(UNREADABLE, '')
    .toWellFormed()
    .replace(SYMBOL_BULLET, '•')
    .replace(COMPATIBLE, (each) => each.normalize('NFKC'))
    .replace(ACCENT_THEN_LETTER, withAccent)
    .normalize('NFC');
}

function withAccent(as: string, accent: string, letter: string): string {
  const base = letter === 'ı' ? 'i' : letter;
  const composed = `${base}${COMBINING[accent] ?? ''}`.normalize('NFC');
  return composed.length === 1 ? composed : as;
}

/** A letter of a script written without spaces between words, or its punctuation. */
const UNSPACED = /[\u3001-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\uFF00-\uFF65\u{20000}-\u{3FFFF}]/u;

export function isUnspaced(character: string): boolean {
  return UNSPACED.test(character);
}

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu;
const LETTER = /\p{L}/gu;

/** Whether most of its letters are of a script that runs from right to left. */
export function isRightToLeft(text: string): boolean {
  const backwards = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  return backwards > 0 && backwards * 2 > (text.match(LETTER)?.length ?? 0);
}
