import { expect } from 'chai';
import type { PdfOptions } from '../support/pdf-writer.js';
import { linesAt, PAGE, pdfOf, streamOf } from '../support/pdf-writer.js';
import { readBy } from '../support/read-pdf.js';

/** A rectangle on the page; y is measured from the top of the page. */
const rect = (x: number, y: number, width: number, height = 16): string =>
  `/Rect [${x} ${PAGE.height - y - height} ${x + width} ${PAGE.height - y}]`;
const widget = (entries: string): string => `/Subtype /Widget /F 4 ${entries}`;
/** The appearances of a button's states. Their names are the values that the button exports. */
const states = (name: string): string => `/AP << /N << /${name} 7 0 R /Off 7 0 R >> >>`;

/** An appearance stream that draws these lines. */
const appearance = (lines: readonly string[]): Buffer => {
  const shown = lines.map((line) => `(${line}) Tj 0 -12 Td`).join(' ');
  const entries = '/Type /XObject /Subtype /Form /BBox [0 0 200 40] /Resources << /Font << /F1 3 0 R >> >>';
  return streamOf(Buffer.from(`BT /F1 10 Tf 2 28 Td ${shown} ET`), {}, entries);
};

const textOf = async (
  labels: readonly string[],
  annotations: readonly string[],
  options: PdfOptions = {},
): Promise<string> => {
  const file = pdfOf([linesAt(labels, { x: 50, y: 100 }, 30)], { annotations: [annotations], ...options });
  return (await readBy('pdfjs', file))[0] ?? '';
};

describe('The text of the annotations of a PDF', () => {
  it('is placed beside the label, with displayed values of text and choice fields', async () => {
    const text = await textOf(
      ['Name', 'Country', 'Colours', 'Remarks'],
      [
        widget(`/FT /Tx /T (name) /V (Ada Lovelace) ${rect(150, 88, 200)}`),
        widget(
          `/FT /Ch /Ff 131072 /T (country) /Opt [[(de) (Germany)] [(fr) (France)]] /V (fr) ${rect(150, 118, 200)}`,
        ),
        widget(
          `/FT /Ch /Ff 2097152 /T (colours) /Opt [(red) (green) (blue)] /V [(red) (blue)] ${rect(150, 145, 200, 30)}`,
        ),
        widget(
          `/FT /Tx /Ff 4096 /DA (/F1 10 Tf) /T (remarks) /V (first line\\nsecond line) ${rect(150, 182, 200, 40)}`,
        ),
      ],
    );
    expect(text.split(/\s+/).join(' ')).to.match(
      /Name Ada Lovelace Country France .*red.*blue.* Remarks first line second line/,
    );
    expect(text).to.include('Colours');
  });

  it('contains the values of checked boxes and radio buttons, and omits unchecked ones', async () => {
    const text = await textOf(
      ['Married', 'Retired', 'Plan'],
      [
        widget(`/FT /Btn /T (married) /V /Yes /AS /Yes ${states('Yes')} ${rect(150, 88, 14)}`),
        widget(`/FT /Btn /T (retired) /V /Off /AS /Off ${states('Retired67')} ${rect(150, 118, 14)}`),
        widget(`/FT /Btn /Ff 32768 /T (plan) /V /Gold /AS /Gold ${states('Gold')} ${rect(150, 148, 14)}`),
        widget(`/FT /Btn /Ff 32768 /T (plan) /V /Gold /AS /Off ${states('Silver')} ${rect(190, 148, 14)}`),
      ],
    );
    expect(text.split(/\s+/)).to.deep.equal(['Married', 'Yes', 'Retired', 'Plan', 'Gold']);
  });

  it('omits passwords, hidden fields, buttons and links', async () => {
    const text = await textOf(
      ['Account'],
      [
        widget(`/FT /Tx /T (account) /V (A-17) ${rect(150, 88, 100)}`),
        widget(`/FT /Tx /Ff 8192 /T (secret) /V (hunter2) ${rect(250, 88, 100)}`),
        `/Subtype /Widget /F 2 /FT /Tx /T (hidden) /V (unseen) ${rect(150, 118, 100)}`,
        widget(`/FT /Btn /Ff 65536 /T (send) /V (Send) /MK << /CA (Send) >> ${rect(150, 148, 100)}`),
        `/Subtype /Link /Contents (a link) ${rect(150, 178, 100)}`,
      ],
    );
    expect(text.split(/\s+/)).to.deep.equal(['Account', 'A-17']);
  });

  it('contains free text in its place, and notes under a separate heading', async () => {
    const text = await textOf(
      ['First line of the page', 'Last line of the page'],
      [
        `/Subtype /FreeText /DA (/Helv 10 Tf 0 g) /Contents (Typed between the lines) ${rect(50, 107, 300)}`,
        `/Subtype /Text /T (Ada) /Contents (Is this so?\\nI doubt it.) ${rect(400, 88, 20)}`,
        `/Subtype /Highlight /Contents (Quote this) /QuadPoints [50 740 90 740 50 730 90 730] ${rect(50, 90, 40)}`,
        `/Subtype /Highlight /QuadPoints [50 740 90 740 50 730 90 730] ${rect(50, 90, 40)}`,
      ],
    );
    expect(text.replaceAll(/\n+/g, '\n').split('\n')).to.deep.equal([
      'First line of the page',
      'Typed between the lines',
      'Last line of the page',
      'Notes on this page:',
      'Ada: Is this so?',
      'I doubt it.',
      'Quote this',
    ]);
  });

  it('keeps its place on a rotated page', async () => {
    const side = [
      { text: 'Name', x: 100, y: 700, angle: 90 },
      { text: 'Town', x: 130, y: 700, angle: 90 },
    ];
    const turned = (x: number, value: string): string =>
      widget(
        `/FT /Tx /T (t${x}) /V (${value}) /MK << /R 90 >> /Rect [${x} ${PAGE.height - 640} ${x + 16} ${PAGE.height - 500}]`,
      );
    const file = pdfOf([side], { annotations: [[turned(88, 'Ada'), turned(118, 'London')]] });
    expect((await readBy('pdfjs', file))[0]?.split(/\s+/)).to.deep.equal(['Name', 'Ada', 'Town', 'London']);
  });

  it('contains the displayed text of a field whose value is a stream', async () => {
    const text = await textOf(
      ['Remarks', 'Account'],
      [
        widget(`/FT /Tx /Ff 4096 /T (remarks) /V OBJECT_0 /AP << /N OBJECT_1 >> ${rect(150, 88, 200, 40)}`),
        widget(`/FT /Tx /Ff 8192 /T (secret) /V OBJECT_0 /AP << /N OBJECT_1 >> ${rect(150, 140, 200)}`),
      ],
      { objects: [streamOf(Buffer.from('As long as a stream')), appearance(['As long', 'as a stream'])] },
    );
    expect(text.split(/\s+/).join(' ')).to.equal('Remarks As long as a stream Account');
  });

  it('falls back to rich text or the appearance when free text or a note has no plain text', async () => {
    const rich = (words: string): string =>
      `/RC (<?xml version="1.0"?><body xmlns="http://www.w3.org/1999/xhtml"><p>${words}</p></body>)`;
    const text = await textOf(
      ['First line', 'Middle line', 'Last line'],
      [
        `/Subtype /FreeText /DA (/Helv 10 Tf 0 g) ${rich('typed <b>richly</b>')} ${rect(50, 107, 300)}`,
        `/Subtype /FreeText /DA (/Helv 10 Tf 0 g) /AP << /N OBJECT_0 >> ${rect(50, 137, 300)}`,
        `/Subtype /Text /T (Ada) ${rich('Is this so?')} ${rect(400, 88, 20)}`,
      ],
      { objects: [appearance(['only drawn'])] },
    );
    expect(text.split(/\n+/)).to.deep.equal([
      'First line',
      'typed richly',
      'Middle line',
      'only drawn',
      'Last line',
      'Notes on this page:',
      'Ada: Is this so?',
    ]);
  });

  it('appends the values of fields outside all pages to the last page, once', async () => {
    const parent = '/FT /Btn /Ff 32768 /T (plan) /V /Gold /Kids [OBJECT_5 OBJECT_6]';
    const text = await textOf(
      ['Account'],
      [
        widget(`/FT /Tx /T (account) /V (A-17) ${rect(150, 88, 100)}`),
        widget(`/Parent OBJECT_8 ${rect(150, 118, 100)}`),
      ],
      {
        catalog: '/AcroForm << /Fields [FIELDS OBJECT_0 OBJECT_1 OBJECT_2 OBJECT_3 OBJECT_4 OBJECT_7 OBJECT_8] >>',
        objects: [
          `<< ${widget(`/FT /Tx /T (customer) /V (Ada) /DV (Nobody) ${rect(0, 0, 10)}`)} >>`,
          `<< ${widget(`/FT /Tx /T (empty) ${rect(0, 0, 10)}`)} >>`,
          `<< ${widget(`/FT /Tx /Ff 8192 /T (secret) /V (hunter2) ${rect(0, 0, 10)}`)} >>`,
          `<< ${widget(`/FT /Ch /Ff 131072 /T (country) /Opt [[(de) (Germany)]] /V (de) ${rect(0, 0, 10)}`)} >>`,
          `<< ${parent} >>`,
          `<< ${widget(`/Parent OBJECT_4 /AS /Gold ${states('Gold')} ${rect(0, 0, 10)}`)} >>`,
          `<< ${widget(`/Parent OBJECT_4 /AS /Off ${states('Silver')} ${rect(0, 0, 10)}`)} >>`,
          `<< /Subtype /Widget /F 2 /FT /Tx /T (hidden) /V (unseen) ${rect(0, 0, 10)} >>`,
          `<< /FT /Tx /T (town) /V (London) /Kids [11 0 R OBJECT_9] >>`,
          `<< ${widget(`/Parent OBJECT_8 ${rect(0, 0, 10)}`)} >>`,
        ],
      },
    );
    expect(text.split(/\s*\n+/)).to.deep.equal([
      'Account\tA-17',
      'London',
      'Form fields without a place on a page:',
      'customer: Ada',
      'country: Germany',
      'plan: Gold',
    ]);
  });
});
