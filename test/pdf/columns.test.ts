import { expect } from 'chai';
import type { Parser } from '../../src/pdf/child-protocol.js';
import { linesAt, pdfOf, widthOf, type PlacedText } from '../support/pdf-writer.js';
import { readBy } from '../support/read-pdf.js';

const FIRST =
  'Die Verwaltungsvorschriften unterscheiden zwischen Grundstücksentwässerungsanlagen und öffentlichen Kanälen, ' +
  'deren Instandhaltung den Gemeinden obliegt. Ein Eigentümer, der Niederschlagswasser ableitet, beantragt eine ' +
  'Genehmigung und fügt Lagepläne sowie Berechnungsunterlagen bei. Die Behörde prüft Wirtschaftlichkeit, ' +
  'Umweltverträglichkeit und Standsicherheit innerhalb gesetzlicher Fristen. Versäumt sie dies, gilt der Antrag als ' +
  'bewilligt. Nachbarn dürfen Einwendungen erheben, solange Auslegungsfristen laufen.';
const SECOND =
  'Historische Aufzeichnungen belegen, dass mittelalterliche Handelsstraßen häufig entlang trockener Höhenrücken ' +
  'verliefen. Kaufleute transportierten Salz, Gewürze und Tuche über erstaunliche Entfernungen; Zollstationen ' +
  'finanzierten Burgen. Später verlagerten Flussregulierungen den Warenverkehr auf Schiffe, wodurch manche ' +
  'Residenzstädte verarmten. Archäologische Untersuchungen bestätigen diese Entwicklung anhand von Münzfunden, ' +
  'Keramikscherben und verkohlten Getreideresten aus Vorratsgruben.';
const THIRD =
  'Musikwissenschaftliche Forschung betrachtet Aufführungspraxis, Instrumentenbau und Notenüberlieferung gemeinsam. ' +
  'Handschriften verraten Verzierungen, die gedruckte Ausgaben verschweigen. Orchester experimentieren mit ' +
  'Darmsaiten, Naturhörnern und tieferer Stimmung. Kritiker bemängelten anfangs unsaubere Intonation, inzwischen ' +
  'überwiegt Anerkennung. Konzertveranstalter bieten Einführungsgespräche, damit Zuhörer klangliche Unterschiede ' +
  'nachvollziehen können.';
const HEADING = 'Bekanntmachung über Entwässerung, Handelswege und Musikpflege in drei Aufsätzen';

describe('Extraction of columns', () => {
  for (const parser of ['pdfjs', 'pdf2json'] as const) {
    describe(`by ${parser}`, () => {
      it('reads two or three justified columns one after the other, with any word spacing', async () => {
        for (const [texts, width] of [
          [[FIRST, SECOND], 180],
          [[FIRST, SECOND, THIRD], 150],
          [[FIRST, SECOND, THIRD], 142],
        ] as const) {
          const columns = texts.map((text, index) => justified(text, { x: 40 + index * (width + 14), y: 100, width }));
          await expectOrder(parser, columns.flat(), texts.join(' '));
          await expectOrder(parser, byRows(columns.flat()), texts.join(' '));
        }
      });

      it('reads two columns after the heading that spans them', async () => {
        const columns = [
          justified(FIRST, { x: 40, y: 100, width: 180 }),
          justified(SECOND, { x: 234, y: 106, width: 180 }),
        ];
        await expectOrder(
          parser,
          [...columns.flat(), { text: HEADING, x: 40, y: 70 }],
          `${HEADING} ${FIRST} ${SECOND}`,
        );
      });

      it('reads a column completely when a figure with labels interrupts it', async () => {
        const upper = justified(FIRST, { x: 40, y: 100, width: 180 });
        const lower = justified(THIRD, { x: 40, y: bottomOf(upper) + 120, width: 180 });
        const right = justified(`${SECOND} ${SECOND.replaceAll(/\p{L}{4,}/gu, '$&x')}`, { x: 234, y: 100, width: 180 });
        const axis = linesAt(['0', '10', '20', '30', '40', '50', '60'], { x: 44, y: bottomOf(upper) + 30 }, 10);
        const words = `${FIRST} ${axis.map(({ text }) => text).join(' ')} ${THIRD} ${right.map(({ text }) => text).join(' ')}`;
        await expectOrder(parser, [...upper, ...lower, ...right, ...axis], words);
      });

      it('separates a column from code and a table in the next column', async () => {
        const left = justified(`${FIRST} ${SECOND}`, { x: 40, y: 100, width: 180 });
        const upper = justified(THIRD, { x: 234, y: 100, width: 180 });
        const code = ['for (;;) {', '  lies();', '  if (n > 9) stop();', '  zaehle(n);', '}'];
        const listing = linesAt(code, { x: 240, y: bottomOf(upper) + 20, size: 8 }, 11);
        const cells = [10, 20, 30].flatMap((value, line) =>
          [`Reihe${value}`, `${value},5`, `${value + 1},25`].map((text, at) => ({
            text,
            x: 240 + at * 60,
            y: bottomOf(listing) + 17 + line * 13,
            size: 8,
          })),
        );
        const words = [...code.map((line) => line.trim()), ...cells.map(({ text }) => text)].join(' ');
        await expectOrder(parser, [...left, ...upper, ...listing, ...cells], `${FIRST} ${SECOND} ${THIRD} ${words}`);
      });

      it('keeps footnotes with their column, and separates a narrow sidebar', async () => {
        const note = '1 Vergleiche hierzu die Anmerkungen des Herausgebers im Anhang.';
        const left = justified(FIRST, { x: 40, y: 100, width: 180 });
        const notes = justified(note, { x: 40, y: bottomOf(left) + 24, width: 180, size: 7 });
        const right = justified(SECOND, { x: 234, y: 100, width: 180 });
        const bar = justified(THIRD.slice(0, 230), { x: 428, y: 100, width: 110, size: 8 });
        await expectOrder(
          parser,
          [...left, ...right, ...notes, ...bar],
          `${FIRST} ${note} ${SECOND} ${THIRD.slice(0, 230)}`,
        );
      });

      it('does not split a table, or a single justified column', async () => {
        const rows = [
          ['Bezeichnung des Bauteils', 'Werkstoff und Oberfläche', 'Stückzahl'],
          ['Zylinderkopfdichtung', 'Edelstahl, gewalzt', '12'],
          ['Kurbelwellenlager vorn', 'Bronze', '4'],
          ['Nockenwelle', 'Stahl, gehärtet und poliert', '2'],
          ['Ölwannenschraube', 'Stahl, verzinkt', '24'],
          ['Ansaugkrümmer links', 'Aluminium', '1'],
          ['Ventilfeder', 'Federstahl, kugelgestrahlt', '16'],
          ['Pleuelstange', 'Stahl, geschmiedet', '4'],
        ];
        const cells = rows.flatMap((row, line) =>
          row.map((text, at) => ({ text, x: 40 + at * 190, y: 100 + line * 14, size: 9 })),
        );
        const prose = justified(`${FIRST} ${SECOND} ${THIRD}`, { x: 40, y: 260, width: 230 });
        await expectOrder(parser, [...cells, ...prose], `${rows.flat().join(' ')} ${FIRST} ${SECOND} ${THIRD}`);
        await expectOrder(parser, prose, `${FIRST} ${SECOND} ${THIRD}`);
      });
    });
  }

  it('reads columns of a right-to-left script from the right', async () => {
    const [first, second] = ['אבגדהוזחט', 'יכלמנסעפצ'].map((letters) =>
      Array.from({ length: 14 }, (_, line) =>
        [...letters, ...letters].map((each) => each + 'אש'.charAt(line % 2)).join(''),
      ),
    );
    const right = linesAt(first ?? [], { x: 320, y: 100 });
    const left = linesAt(second ?? [], { x: 80, y: 100 });
    const [text] = await readBy('pdfjs', pdfOf([[...left, ...right].map(backwards)]));
    expect(text?.split(/\s+/)).to.deep.equal([...(first ?? []), ...(second ?? [])]);
  });
});

/** Sets words in justified lines. Each word is drawn separately; the spaces share the remaining width of the line. */
function justified(
  text: string,
  { x, y, width, size = 9 }: { readonly x: number; readonly y: number; readonly width: number; readonly size?: number },
): readonly PlacedText[] {
  const lines: string[][] = [[]];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? [];
    if (line.length > 0 && widthOf([...line, word].join(' '), size) > width) lines.push([word]);
    else line.push(word);
  }
  return lines.flatMap((words, index) => {
    const isLast = index === lines.length - 1 || words.length === 1;
    const letters = widthOf(words.join(''), size);
    const space = isLast ? size / 2 : (width - letters) / (words.length - 1);
    let at = x;
    return words.map((word) => {
      const placed = { text: word, x: at, y: y + index * size * 1.2, size };
      at += widthOf(word, size) + space;
      return placed;
    });
  });
}

function bottomOf(texts: readonly PlacedText[]): number {
  return Math.max(...texts.map(({ y }) => y));
}

/** Sorts items by row from the top, as a parser without column detection reads them. */
function byRows(texts: readonly PlacedText[]): readonly PlacedText[] {
  return texts.toSorted((one, other) => one.y - other.y || one.x - other.x);
}

/** The glyphs of right-to-left text, ordered from left to right, as a PDF stores them. */
function backwards(placed: PlacedText): PlacedText {
  return { ...placed, text: [...placed.text].toReversed().join('') };
}

async function expectOrder(parser: Parser, texts: readonly PlacedText[], words: string): Promise<void> {
  const [found] = await readBy(parser, pdfOf([texts]));
  expect(found?.split(/\s+/)).to.deep.equal(words.split(' '));
}
