/** Normalises the characters of a PDF. */

/**
 * Forms that only fonts need: Latin, Armenian, Hebrew and Arabic ligatures and presentation forms, forms for vertical
 * lines, and Kangxi radicals, which CJK fonts use for ideographs of the same shape. Characters that writers choose stay:
 * superscripts, fractions, circled numbers, full-width letters, signs such as \u2122.
 */
const FORM_OF_FONT = /[\uFB00-\uFB4F\uFB50-\uFDFF\uFE10-\uFE19\uFE30-\uFE48\uFE70-\uFEFC\u2F00-\u2FD5\u2E9F\u2EF3]/gu;
/** The space or tatweel that NFKC puts before a mark without a letter. */
const CARRIED_MARK = /^[ \u0640](?=\p{M})/u;
/** CJK radicals, each followed by the ideograph of the same shape (Unicode's EquivalentUnifiedIdeograph). */
const RADICALS =
  '⺁厂⺂乛⺃乚⺄乙⺅亻⺆冂⺇𠘨⺈刀⺉刂⺊卜⺋㔾⺌小⺍尐⺎兀⺏尣⺐尢⺑𡯂⺒巳⺓幺⺔彑⺕彐⺖忄⺗心⺘扌⺙攵⺛旡⺜日⺝月⺞歺⺠民⺡氵⺢氺⺣灬⺤爫⺥爬⺦丬⺧牛⺨犭' +
  '⺩王⺪𤴔⺫目⺬示⺭礻⺮𥫗⺯糹⺰纟⺱罓⺲罒⺳㓁⺴冗⺵𦉫⺶羊⺷𦍌⺸𦍋⺹耂⺺肀⺻聿⺼肉⺽𦥑⺾艹⺿艺⻀艻⻁虎⻂衤⻃覀⻄西⻅见⻆角⻇𧢲⻈讠⻉贝⻊𧾷⻋车⻌辶⻍辷⻎辸' +
  '⻏邑⻐钅⻑長⻒镸⻓长⻔门⻕𨸏⻖阝⻗雨⻘青⻙韦⻚页⻛风⻜飞⻝食⻞𩙿⻟飠⻠饣⻡𩠐⻢马⻣骨⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龜⻲亀';
const IDEOGRAPH_OF = new Map(
  Array.from(RADICALS.matchAll(/(.)(.)/gu), ([, radical = '', ideograph]) => [radical, ideograph]),
);
const RADICAL = /[\u2E80-\u2EFF]/gu;
/** Spaces of all widths, and characters that separate lines or pages inside a run. */
const SPACE = /[\s\u00A0\u2000-\u200A\u202F\u205F\u3000]+/gu;
/** Controls, zero-width marks, the byte-order mark, noncharacters. Joiners stay, because some scripts need them. */
const UNREADABLE = /[\u0000-\u0008\u000E-\u001F\u007F-\u009F\u200B\u2060\uFEFF\uFFFE\uFFFF]/gu;
/** The bullet of Symbol fonts, a private-use character. */
const SYMBOL_BULLET = /\uF0B7/gu;
/**
 * A free-standing accent before its letter, as TeX writes it. The ASCII forms of grave accent, circumflex and tilde are
 * excluded, because they are punctuation.
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
 * Normalises a line: replaces forms of fonts by their letters, puts accents on their letters, reduces spaces to one, keeps
 * tabs and removes unreadable characters. The result is well-formed UTF-16 in canonical composition (NFC).
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
    .replace(FORM_OF_FONT, (each) => each.normalize('NFKC').replace(CARRIED_MARK, ''))
    .replace(RADICAL, (each) => IDEOGRAPH_OF.get(each) ?? each)
    .replace(ACCENT_THEN_LETTER, withAccent)
    .normalize('NFC');
}

function withAccent(as: string, accent: string, letter: string): string {
  const base = letter === 'ı' ? 'i' : letter;
  const composed = `${base}${COMBINING[accent] ?? ''}`.normalize('NFC');
  return composed.length === 1 ? composed : as;
}

/** Letters and punctuation of scripts without spaces between words. */
const UNSPACED = /[\u3001-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\uFF00-\uFF65\u{20000}-\u{3FFFF}]/u;

export function isUnspaced(character: string): boolean {
  return UNSPACED.test(character);
}
