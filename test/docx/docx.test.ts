import { expect } from 'chai';
import { docxOf } from '../../src/docx/docx.js';
import { DocxTimedOut } from '../../src/docx/errors.js';
import { nodeSystem } from '../../src/system/system.js';
import { rejectionOf } from '../support/rejection.js';
import { unzipped } from '../support/unzipped.js';
import { sample } from '../support/soak.js';

const DRAFT = `# Sauna

A **bold** and *italic* text with \`code\`, a [link](https://example.org/a?b=1&c=2) and a note[^why].

1. First
   - Inner
2. Second

> Quoted
> > Twice

| Cost | Who |
| ---: | :-- |
| 5 | Town |

\`\`\`js
let a = 1;
let b = 2;
\`\`\`

- [x] Done
- [ ] Open

---

Again[^why].

[^why]: Because it is cold.

    And dark.
`;

const NO_MARK = { properties: [], line: null };

async function partsOf(draft: string): Promise<ReadonlyMap<string, string>> {
  return unzipped(await docxOf(draft, { title: 'A sauna & more', sources: [], mark: NO_MARK }, nodeSystem()));
}

/** The fields of a page of a document that nothing quotes. */
const NO_QUOTATION = { url: null, title: null, quotation: null, citations: [] };

describe('A draft as a .docx file', () => {
  it('numbers the marks of sources, and lists these at its end', async () => {
    const id = 'ab12cd34'.repeat(8);
    const draft = 'The sea is wide [AB12CD34:2], deep [ab12cd34:1, ab12cd34:2] and old [00000000:1].';
    const sources = [
      { ...NO_QUOTATION, mark: 'AB12CD34:2', document: id, page: 2, filename: 'The sea.pdf', chunks: [1] },
      { ...NO_QUOTATION, mark: 'ab12cd34:1', document: id, page: 1, filename: null, chunks: [0] },
      { ...NO_QUOTATION, mark: '00000000:1', document: null, page: 1, filename: null, chunks: [] },
    ];
    const text =
      unzipped(await docxOf(draft, { title: 'The sea', sources, mark: NO_MARK }, nodeSystem())).get(
        'word/document.xml',
      ) ?? '';
    const paragraphs = text.split('</w:p>').map((each) => each.replace(/<[^>]*>/g, ''));
    expect(paragraphs.slice(0, 4)).to.deep.equal([
      'The sea is wide [1], deep [2][1] and old [00000000:1].',
      'Sources',
      'The sea.pdf, page 2',
      'Document ab12cd34, page 1',
    ]);
  });

  it('says what made it in its properties and, unless switched off, in its last line', async () => {
    const mark = { properties: [['council', 'Poets & <co>']] as const, line: 'Written with AI: Poets & <co>.' };
    const parts = unzipped(await docxOf('The sea', { title: 'Sea', sources: [], mark }, nodeSystem()));
    expect(parts.get('docProps/custom.xml')).to.match(/name="council"><vt:lpwstr>Poets &amp; &lt;co&gt;</);
    const lines = (parts.get('word/document.xml') ?? '').split('</w:p>').map((each) => each.replace(/<[^>]*>/g, ''));
    expect(lines.filter((line) => line !== '')).to.deep.equal(['The sea', 'Written with AI: Poets &amp; &lt;co&gt;.']);
    const silent = await docxOf('The sea', { title: 'Sea', sources: [], mark: { ...mark, line: null } }, nodeSystem());
    expect(unzipped(silent).get('word/document.xml')).not.to.include('Written');
  });

  it('marks the quotations that are missing, and counts them at its end', async () => {
    const id = 'ab12cd34'.repeat(8);
    const url = 'https://example.org/sea';
    const draft = `“The sea is very wide” [ab12cd34:1], “the sea is very dry” [ab12cd34:1], “it is not so wet” ([Sea](${url})).`;
    const of = (quoted: string, quotation: 'exact' | 'missing') => ({ quoted, quotation });
    const sources = [
      {
        ...{ ...NO_QUOTATION, mark: 'ab12cd34:1', document: id, page: 1, filename: 'The sea.pdf', chunks: [0] },
        citations: [of('The sea is very wide', 'exact'), of('the sea is very dry', 'missing')],
      },
      {
        ...{ ...NO_QUOTATION, mark: url, document: null, page: null, filename: null, chunks: [], url, title: 'Sea' },
        citations: [of('it is not so wet', 'missing')],
      },
    ];
    const parts = unzipped(await docxOf(draft, { title: 'Sea', sources, mark: NO_MARK }, nodeSystem()));
    const body = parts.get('word/document.xml') ?? '';
    const paragraphs = body.split('</w:p>').map((each) => each.replace(/<[^>]*>/g, ''));
    expect(paragraphs.slice(0, 4)).to.deep.equal([
      '“The sea is very wide” [1], “the sea is very dry” [1] [not found], “it is not so wet” (Sea [not found]).',
      'Sources',
      'The sea.pdf, page 1',
      '2 of 3 quotations were not found in their source.',
    ]);
  });

  it('has the final output as JSON at its end', async () => {
    const options = { title: 'Trees', sources: [], mark: NO_MARK, output: JSON.stringify({ oak: ['<old>'] }, null, 2) };
    const body = unzipped(await docxOf('Oaks grow.', options, nodeSystem())).get('word/document.xml') ?? '';
    const words = body
      .replace(/<[^>]*>/g, ' ')
      .replaceAll('&quot;', '"')
      .replace(/\s+/g, ' ')
      .trim();
    expect(words).to.equal('Oaks grow. Output { "oak": [ "&lt;old&gt;" ] }');
  });

  it('has the headings, lists, tables, quotes, code, links and footnotes of the draft', async () => {
    const parts = await partsOf(DRAFT);
    const body = parts.get('word/document.xml') ?? '';
    expect(body).to.match(/<w:pStyle w:val="Heading1"\/>.*?<w:t [^>]*>Sauna<\/w:t>/);
    expect(body).to.match(/<w:b\/>.{0,60}<w:t [^>]*>bold</);
    expect(body).to.match(/<w:i\/>.{0,60}<w:t [^>]*>italic</);
    expect(body).to.match(/<w:numPr>.*First.*<w:ilvl w:val="1"\/>.*Inner.*Second/);
    expect(body).to.match(/<w:pStyle w:val="Draftquote"\/>.*Quoted.*Twice/);
    expect(body).to.match(/<w:tbl>.*<w:tblHeader\/>.*Cost.*<w:jc w:val="right"\/>.*5.*Town.*<\/w:tbl>/);
    expect(body).to.match(/<w:pStyle w:val="Draftcode"\/>.*let a = 1;.*<w:br\/>.*let b = 2;/);
    expect(body).to.match(/☑ .*Done.*☐ .*Open/);
    expect(body).to.match(/<w:hyperlink [^>]*r:id=/);
    expect(parts.get('word/_rels/document.xml.rels')).to.include('https://example.org/a?b=1&amp;c=2');
    expect(parts.get('docProps/core.xml')).to.include('<dc:title>A sauna &amp; more</dc:title>');
    const notes = parts.get('word/footnotes.xml') ?? '';
    expect(body.match(/<w:footnoteReference /g)).to.have.lengthOf(2);
    expect(notes).to.match(/Because it is cold\..*And dark\..*See note 1\./);
    expect(body).not.to.include('Because it is cold');
  });

  it('keeps a footnote that nothing refers to, and texts that a parser could lose', async () => {
    const body = (await partsOf('[^a]: Alone\n\n[x]: http://x.org "y"\n\n<b>raw</b>')).get('word/document.xml') ?? '';
    for (const text of ['Alone', 'http://x.org', '&lt;b&gt;raw&lt;/b&gt;']) expect(body).to.include(text);
  });

  it('replaces characters that XML cannot contain', async () => {
    const body = (await partsOf('bell \u0007, \u0000, \uffff and `\u001b[31m` end')).get('word/document.xml') ?? '';
    expect(body).not.to.match(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/);
    expect(body).to.include('bell \ufffd').and.to.include('\ufffd[31m');
  });

  it('numbers each list from its own first number, nested lists too', async () => {
    const parts = await partsOf('- A\n  1. x\n  2. y\n- B\n  1. z\n\ntext\n\n7. seven\n\n> 7. seven\n');
    const lists = numberingIn(parts);
    expect(lists.map(({ level, start }) => [level, start])).to.deep.equal([
      [1, 1],
      [1, 1],
      [1, 1],
      [0, 7],
      [0, 7],
    ]);
    // Items of lists with the same definition continue each other's numbers.
    expect(new Set(lists.map(({ definition }) => definition))).to.have.lengthOf(4);
  });

  it('keeps a text in the form of a reference to a list', async () => {
    const text = '{list-1-1} {list-1-0} {list-0-0} {list-0-1}';
    const body = (await partsOf(`${text}\n\n1. one\n`)).get('word/document.xml') ?? '';
    expect(body).to.include(text);
  });

  it('writes the numbers of lists past the 500th as text', async () => {
    const parts = await partsOf('3. a\n4. b\n\n- c\n\n'.repeat(600));
    expect(numberingIn(parts)).to.have.lengthOf(1_000);
    const body = parts.get('word/document.xml') ?? '';
    expect(body.match(/>3\. <.*?>a</g)).to.have.lengthOf(100);
    expect(body.match(/>4\. <.*?>b</g)).to.have.lengthOf(100);
  });

  it('has at most the 63 columns that Word opens, and all cells of wider tables', async () => {
    const row = (name: string): string =>
      `|${Array.from({ length: 70 }, (_, index) => `${name}${index}`).join('|')}|\n`;
    const body = (await partsOf(`${row('h')}|${'-|'.repeat(70)}\n${row('c')}`)).get('word/document.xml') ?? '';
    for (const [line = ''] of body.matchAll(/<w:tr>.*?<\/w:tr>/g)) {
      expect(line.match(/<w:tc>/g)).to.have.lengthOf(63);
    }
    expect(body).to.include('>h69<').and.to.include('>c62<').and.to.include('>c69<');
  });

  /** The definitions of the numbered paragraphs, in order. */
  function numberingIn(parts: ReadonlyMap<string, string>) {
    const numbering = parts.get('word/numbering.xml') ?? '';
    const nums = numbering.matchAll(/<w:num w:numId="(\d+)".*?><w:abstractNumId w:val="(\d+)"\/>/g);
    const definitions = new Map([...nums].map(([, num, definition]) => [num, definition]));
    const paragraphs = (parts.get('word/document.xml') ?? '').matchAll(
      /<w:ilvl w:val="(\d)"\/><w:numId w:val="(\d+)"\/>/g,
    );
    return [...paragraphs].flatMap(([, level = '', num]) => {
      const definition = definitions.get(num) ?? '';
      const [, xml = ''] = new RegExp(`w:abstractNumId="${definition}".*?>(.*?)</w:abstractNum>`).exec(numbering) ?? [];
      const at = new RegExp(`w:ilvl="${level}"[^>]*><w:start w:val="(\\d+)"/><w:numFmt w:val="decimal"/>`).exec(xml);
      return at === null ? [] : [{ definition, level: Number(level), start: Number(at[1]) }];
    });
  }

  it('converts drafts of the largest size, however they are nested', async () => {
    const units = ['1. a\n   ', '**a *b ', '> ', '- ', '*a* ', '| a | b |\n', '[^1]', '[a](b:c) '];
    for (const unit of sample(units, 2)) {
      const draft = unit.repeat(131_072 / unit.length);
      expect((await docxOf(draft, { title: unit, sources: [], mark: NO_MARK }, nodeSystem())).length, unit).to.be.above(
        1_000,
      );
    }
  });

  it('ends the thread of a draft that takes too long', async () => {
    const soon = (_ms: number, act: () => void): (() => void) => nodeSystem().after(0, act);
    const making = docxOf('*a* '.repeat(32_768), { title: 'Long', sources: [], mark: NO_MARK }, { after: soon });
    expect(await rejectionOf(making)).to.be.instanceOf(DocxTimedOut);
  });
});
