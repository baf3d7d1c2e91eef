import { expect } from 'chai';
import { characterErrorRate } from '../support/character-errors.js';
import { linesAt, pdfOf, widthOf, type PdfOptions, type PlacedText } from '../support/pdf-writer.js';
import { readBy } from '../support/read-pdf.js';
import { IS_SOAK } from '../support/soak.js';

/** What the issue asks for. */
const MOST_ERRORS = 0.02;
/** The pages of a book, of which every fiftieth is blank. */
const PAGES = IS_SOAK ? 300 : 60;

const LEFT = [
  'A council of agents reads a text, and one after',
  'the other says what it thinks of it. The first of',
  'them drafts, the second weighs what was drafted,',
  'and the third decides whether it is good enough',
  'to be shown. None of them may look at what the',
  'others keep to themselves, and all of them write',
  'down what they did, so that it can be read again.',
];
const RIGHT = [
  'What is written down is never changed. A change',
  'is another line below the last one. Whoever comes',
  'later reads all lines from the first, and knows',
  'what those knew who wrote them. This is slower than',
  'a table that holds only the newest state, and it',
  'is the reason why nothing is lost when a machine',
  'stops in the middle of a sentence.',
];
const TITLE = 'How councils come to a decision, and what they leave behind';

describe('Text extraction', () => {
  for (const parser of ['pdfjs', 'pdf2json'] as const) {
    describe(`by ${parser}`, () => {
      const textOf = async (texts: readonly PlacedText[], options?: PdfOptions): Promise<string> => {
        const found = await readBy(parser, pdfOf([texts], options));
        return found[0] ?? '';
      };

      it('reads two columns one after the other, in any drawing order', async () => {
        const left = linesAt(LEFT, { x: 50, y: 120 });
        const right = linesAt(RIGHT, { x: 320, y: 120 });
        const byRows = left.flatMap((line, index) => [line, right[index] ?? line]);
        for (const drawn of [[...left, ...right], [...right, ...left], byRows]) {
          const text = await textOf([{ text: TITLE, x: 100, y: 80, size: 14 }, ...drawn]);
          expect(errorRate([TITLE, ...LEFT, ...RIGHT], text)).to.be.at.most(MOST_ERRORS);
        }
      });

      it('reads three columns one after the other between a title and a wide paragraph', async () => {
        const narrow = (lines: readonly string[]): string[] => lines.map((line) => line.slice(0, 28).trim());
        const columns = [narrow(LEFT), narrow(RIGHT), narrow(LEFT).reverse()];
        const wide = ['This paragraph runs over the whole page and belongs to none of the columns above or below it.'];
        const text = await textOf([
          ...columns.flatMap((lines, index) => linesAt(lines, { x: 40 + index * 180, y: 100 })),
          ...linesAt(wide, { x: 40, y: 220 }),
          ...columns.flatMap((lines, index) => linesAt(lines, { x: 40 + index * 180, y: 260 })),
        ]);
        expect(errorRate([...columns.flat(), ...wide, ...columns.flat()], text)).to.be.at.most(MOST_ERRORS);
      });

      it('separates words that are drawn word by word or letter by letter', async () => {
        const lines = [...LEFT, ...RIGHT];
        const words = lines.flatMap((line, index) => wordsAt(line, 50, 100 + index * 12, /\S+/g));
        expect(errorRate(lines, await textOf(words))).to.be.at.most(MOST_ERRORS);
        const letters = lines.flatMap((line, index) => wordsAt(line, 50, 100 + index * 12, /\S/g));
        expect(errorRate(lines, await textOf(letters))).to.be.at.most(MOST_ERRORS);
      });

      it('reads pages with pixel units, and fonts of size 1', async () => {
        const words = LEFT.flatMap((line, index) => wordsAt(line, 50, 100 + index * 12, /\S+/g));
        for (const options of [{ unit: 0.24 }, { unit: 1.5 }, { isScaledByMatrix: true }]) {
          const text = await textOf(words, options);
          const areSpacesCertain = parser === 'pdfjs' || options.unit === undefined;
          // pdf2json reports widths in its own units, which hide narrow spaces. Its letters are correct.
          if (areSpacesCertain) expect(errorRate(LEFT, text), JSON.stringify(options)).to.be.at.most(MOST_ERRORS);
          else expect(text.replaceAll(/\s/g, '')).to.equal(LEFT.join('').replaceAll(' ', ''));
        }
      });

      it('splits ligatures into letters, and joins words hyphenated at a line end', async () => {
        const lines = [
          'The o\uFB03ce of the \uFB01rst council is a well-known work-',
          'shop for \uFB02ow charts; a well-',
          'known one.',
        ];
        const text = await textOf(linesAt(lines, { x: 50, y: 100 }));
        expect(text.replaceAll('\n', ' ')).to.equal(
          'The office of the first council is a well-known workshop for flow charts; a well-known one.',
        );
        const helvetica = await textOf([{ text: 'The \uFB01rst \uFB02ow', x: 50, y: 100, font: 'helvetica' }]);
        expect(helvetica).to.equal('The first flow');
      });

      it('reads accents, Greek, Cyrillic and CJK', async () => {
        const lines = [
          'Füße, çà et là, señor, žluťoučký kůň, łódź, Ærø',
          'Γνῶθι σεαυτόν, ὦ φίλε',
          'Съешь же ещё этих мягких французских булок',
          '委員会は与えられた文書を読み、意見を述べる。',
          '理事会阅读文件并发表意见。',
          '위원회는 문서를 읽는다',
        ];
        expect((await textOf(linesAt(lines, { x: 50, y: 100 }, 40))).split(/\n+/)).to.deep.equal(lines);
        const latin = 'Füße, çà et là, señor';
        expect(await textOf([{ text: latin, x: 50, y: 100, font: 'helvetica' }])).to.equal(latin);
      });

      it('joins CJK lines, and adds no spaces to CJK drawn letter by letter', async () => {
        const lines = [
          '委員会は与えられた文書を読み意見を述べ',
          'その理由を記録し後から来る者がそれを読',
          'んで同じ結論に至るかどうかを確かめる。',
        ];
        const letters = lines.flatMap((line, index) => wordsAt(line, 50, 100 + index * 15, /./gu));
        expect(await textOf(letters)).to.equal(lines.join(''));
      });

      it('reads a table row by row, with separated cells', async () => {
        const rows = [
          ['Node', 'Calls', 'Seconds', 'Model'],
          ['writer', '12', '4.50', 'large'],
          ['critic', '9', '2.25', 'small'],
          ['researcher', '31', '19.75', 'large'],
          ['librarian', '4', '0.80', 'small'],
        ];
        const cells = rows.flatMap((row, line) =>
          row.map((text, at) => ({ text, x: 50 + at * 120, y: 100 + line * 14 })),
        );
        const byColumns = [...cells].sort((one, other) => one.x - other.x);
        for (const drawn of [cells, byColumns]) {
          expect(await textOf(drawn)).to.equal(rows.map((row) => row.join('\t')).join('\n'));
        }
      });

      it('keeps subscripts with their word, and reads rotated text after upright text', async () => {
        const text = await textOf([
          { text: 'H', x: 50, y: 100 },
          { text: '2', x: 55, y: 102, size: 6 },
          { text: 'O is water, as everybody knows', x: 58, y: 100 },
          { text: 'printed on the margin', x: 20, y: 400, angle: 90 },
        ]);
        expect(text).to.match(/^H2O is water, as everybody knows\s+printed on the margin$/);
      });

      it(`numbers ${PAGES} pages correctly, including blank ones`, async () => {
        const pages = Array.from({ length: PAGES }, (_, index) =>
          index % 50 === 7 ? [] : linesAt([`This is page ${index + 1} of the book.`, ...LEFT], { x: 50, y: 100 }),
        );
        const texts = await readBy(parser, pdfOf(pages));
        expect(texts).to.have.length(PAGES);
        for (const [index, text] of texts.entries()) {
          if (index % 50 === 7) expect(text).to.equal('');
          else expect(text).to.match(new RegExp(`^This is page ${index + 1} of`));
        }
      });
    });
  }
});

function errorRate(lines: readonly string[], found: string): number {
  return characterErrorRate(lines.join(' '), found.replaceAll(/\s+/g, ' '));
}

/** The pieces of a line that match the pattern, each with its position in the line. */
function wordsAt(line: string, x: number, y: number, piece: RegExp): readonly PlacedText[] {
  return [...line.matchAll(piece)].map(({ 0: text, index }) => ({ text, x: x + widthOf(line.slice(0, index)), y }));
}
