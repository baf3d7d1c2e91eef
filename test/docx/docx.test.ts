import { expect } from 'chai';
import { docxOf } from '../../src/docx/docx.js';
import { unzipped } from '../support/unzipped.js';

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

async function partsOf(draft: string): Promise<ReadonlyMap<string, string>> {
  return unzipped(await docxOf(draft, { title: 'A sauna & more' }));
}

describe('A draft as a .docx file', () => {
  it('numbers the marks of sources, and lists these at its end', async () => {
    const id = 'ab12cd34'.repeat(8);
    const draft = 'The sea is wide [AB12CD34:2], deep [ab12cd34:1, ab12cd34:2] and old [00000000:1].';
    const sources = [
      { document: id, page: 2, filename: 'The sea.pdf' },
      { document: id, page: 1, filename: null },
    ];
    const text = unzipped(await docxOf(draft, { title: 'The sea', sources })).get('word/document.xml') ?? '';
    const paragraphs = text.split('</w:p>').map((each) => each.replace(/<[^>]*>/g, ''));
    expect(paragraphs.slice(0, 4)).to.deep.equal([
      'The sea is wide [1], deep [2][1] and old [00000000:1].',
      'Sources',
      'The sea.pdf, page 2',
      'Document ab12cd34, page 1',
    ]);
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

  it('converts drafts of the largest size, however they are nested', async () => {
    for (const unit of ['> ', '- ', '1. a\n   ', '*a* ', '| a | b |\n', '[^1]', '**a *b ', '[a](b:c) ']) {
      const draft = unit.repeat(131_072 / unit.length);
      expect((await docxOf(draft, { title: unit })).length, unit).to.be.above(1_000);
    }
  });
});
