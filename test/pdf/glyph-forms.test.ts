import { expect } from 'chai';
import { linesAt, pdfOf, widthOf, type PlacedText } from '../support/pdf-writer.js';
import { readBy } from '../support/read-pdf.js';

describe('Normalization of glyph forms', () => {
  const linesOf = async (lines: readonly string[]): Promise<readonly string[]> => {
    const [text = ''] = await readBy('pdfjs', pdfOf([linesAt(lines, { x: 50, y: 100 }, 40)]));
    return text.split(/\n+/);
  };

  it('replaces ligatures, radicals, vertical forms and Hebrew and Arabic presentation forms by plain letters', async () => {
    const lines = ['o\uFB03ce \uFB01nds \uFB06op', '\u2F00\u2F5A\u2ED1\u2EC4', '\uFE41\u6587\uFE42\uFE12', '\uFB2A'];
    expect(await linesOf(lines)).to.deep.equal(['office finds stop', '一片長西', '「文」。', '\u05E9\u05C1']);
    // Lam with alef, a phrase in one glyph, and marks without a base letter or on a tatweel.
    expect(await linesOf(['\uFEF5', '\uFDF2', '\uFE8E\uFE71\uFE92'])).to.deep.equal(['لآ', 'الله', 'بًا']);
  });

  it('keeps superscripts, fractions, signs and full-width letters', async () => {
    const chosen = ['10 m² and ½ of it, Item™ №5', '①②③ ＡＢＣ１２', 'ｱｲｳ ㎏'];
    expect(await linesOf(chosen)).to.deep.equal(chosen);
  });
});

describe('Right-to-left text', () => {
  const ARABIC = 'صدر القرار رقم 2024/15 في 12 مارس 2024 (الجريدة الرسمية).';
  const MIXED = 'يستخدم البرنامج Node Package Manager في الخادم.';
  const HEBREW = 'ההחלטה מספר 15 התקבלה בשנת 2024 (רשומות).';
  const ENGLISH = 'The words שלום עולם mean hello world.';

  for (const parser of ['pdfjs', 'pdf2json'] as const) {
    it(`is extracted by ${parser} in reading order, if drawn by line, by word or by letter`, async () => {
      for (const line of [ARABIC, MIXED, HEBREW, ENGLISH]) {
        const shown = displayed(line);
        for (const piece of [/.+/gu, /\S+/gu, /\S/gu]) {
          if (piece.source === '.+' && line === MIXED) continue;
          const placed = piecesAt(shown, 50, 100, piece);
          const filler = piecesAt(displayed(line === ENGLISH ? 'An English page.' : HEBREW), 50, 140, /\S+/gu);
          const [text = ''] = await readBy(parser, pdfOf([[...placed, ...filler]]));
          expect(text.split('\n')[0], `${piece.source} of ${line}`).to.equal(line);
        }
      }
    });
  }
});

/** A line in visual order from the left, with mirrored brackets and Arabic letters in their final forms. */
function displayed(line: string): string {
  const isBackwards = /^[\p{Script=Arabic}\p{Script=Hebrew}]/u.test(line);
  const phrases =
    line.match(
      /[A-Za-z][A-Za-z .]*[A-Za-z.]|[\d/]+|[\p{Script=Arabic}\p{Script=Hebrew}]+(?: [\p{Script=Hebrew}]+)*|./gu,
    ) ?? [];
  const shown = phrases.map((phrase) =>
    /[\p{Script=Arabic}\p{Script=Hebrew}]/u.test(phrase) ? turned(phrase) : phrase,
  );
  if (!isBackwards) return shown.join('');
  return shown
    .toReversed()
    .join('')
    .replaceAll(/[()]/g, (each) => (each === '(' ? ')' : '('));
}

function turned(text: string): string {
  return [...text]
    .toReversed()
    .map((letter) => FORMS[letter] ?? letter)
    .join('');
}

/** The glyph names of some Arabic letters in fonts. */
const FORMS: Readonly<Record<string, string>> = {
  ا: '\uFE8E',
  ر: '\uFEAE',
  م: '\uFEE4',
  ي: '\uFEF4',
  ل: '\uFEE0',
  س: '\uFEB4',
};

function piecesAt(line: string, x: number, y: number, piece: RegExp): readonly PlacedText[] {
  return [...line.matchAll(piece)].map(({ 0: text, index }) => ({ text, x: x + widthOf(line.slice(0, index)), y }));
}
