import { expect } from 'chai';
import type { Block } from '../../../src/console/record/draft-blocks.js';
import { draftBlocks } from '../../../src/console/record/draft-blocks.js';
import type { Inline } from '../../../src/console/record/draft-inlines.js';
import { inlinesOf } from '../../../src/console/record/draft-inlines.js';
import { hostileTexts } from '../../support/hostile-texts.js';
import { seededRandom } from '../../support/seeded-random.js';

describe('A draft as blocks', () => {
  it('has paragraphs, and headings from the third level on', () => {
    expect(shown('# Title\n## Part\nText on\ntwo lines\n\nNext\n###### Deep')).to.deep.equal([
      'h3(Title)',
      'h4(Part)',
      'p(Text on\ntwo lines)',
      'p(Next)',
      'h6(Deep)',
    ]);
    expect(shown('#hashtag\n\n#')).to.deep.equal(['p(#hashtag)', 'h3()']);
  });

  it('has lists within lists, with numbers from where they begin', () => {
    expect(shown('- one\n- two\n  more\n  - inner\n\n    text\n- three')).to.deep.equal([
      'ul[p(one)|p(two\nmore) ul[p(inner) p(text)]|p(three)]',
    ]);
    expect(shown('Steps:\n1. a\n2. b\n   - c\n3. d')).to.deep.equal(['p(Steps:)', 'ol1[p(a)|p(b) ul[p(c)]|p(d)]']);
    expect(shown('4) a\n\n5) b\n* c')).to.deep.equal(['ol4[p(a)|p(b)]', 'ul[p(c)]']);
    expect(shown('It was in\n1999. A good year.')).to.deep.equal(['p(It was in\n1999. A good year.)']);
  });

  it('has quotes, rules and code, which holds what would be something else', () => {
    expect(shown('> said\n> > twice\n\n---\n* * *')).to.deep.equal(['quote[p(said) quote[p(twice)]]', 'hr', 'hr']);
    expect(shown('```ts\n# no *heading*\n\n<b>\n```\nafter')).to.deep.equal([
      'code(# no *heading*\n\n<b>)',
      'p(after)',
    ]);
    expect(shown('~~~\nstill being written')).to.deep.equal(['code(still being written)']);
  });

  it('has emphasis, inline code and line breaks', () => {
    expect(spelled('a *b* **c** ***d*** _e_ __f__')).to.equal('a em(b) strong(c) strong(em(d)) em(e) strong(f)');
    expect(spelled('**bold *both* bold**')).to.equal('strong(bold em(both) bold)');
    expect(spelled('snake_case_name 2 * 3 * 4 **')).to.equal('snake_case_name 2 * 3 * 4 **');
    expect(spelled('`a*b*` ``c*d`` `open')).to.equal('code(a*b*) code(c*d) `open');
    expect(spelled('one  \ntwo\\\nthree\nfour')).to.equal('onebr()twobr()three\nfour');
    expect(spelled('\\*not\\* \\a')).to.equal('*not* \\a');
  });

  it('links to http, https and mailto alone', () => {
    expect(spelled('[a *b*](https://x.test/y_(z) "t") <mailto:a@b.test>')).to.equal(
      'link:https://x.test/y_(z)(a em(b)) link:mailto:a@b.test(mailto:a@b.test)',
    );
    expect(spelled('See https://x.test/a_b, or (http://y.test).')).to.equal(
      'See link:https://x.test/a_b(https://x.test/a_b), or (link:http://y.test(http://y.test)).',
    );
    expect(spelled('![tree](https://x.test/t.png)')).to.equal('link:https://x.test/t.png(tree)');
    for (const href of [
      'javascript:alert(1)',
      'JAVASCRIPT:x',
      'data:text/html,x',
      '/path',
      '//x.test',
      'java\tscript:x',
      '',
    ]) {
      expect(kindsIn(draftBlocks(`[a](${href}) [b](<${href}>) <${href}>`)), href).not.to.include('link');
    }
    expect(spelled('[a [b](https://x.test) c]')).to.equal('[a link:https://x.test(b) c]');
    expect(spelled('[https://a.test](https://b.test)')).to.equal('link:https://b.test(https://a.test)');
  });

  it('leaves HTML and all that means something elsewhere as text', () => {
    for (const text of hostileTexts()) {
      for (const kind of kindsIn(draftBlocks(text))) expect(kind).not.to.match(/html|image|script/);
    }
    const html = '<img src=x onerror=alert(1)> <a href="javascript:x">y</a> &lt;b&gt;';
    expect(draftBlocks(html)).to.deep.equal([{ kind: 'paragraph', inlines: [{ kind: 'text', text: html }] }]);
  });

  it('loses no word, whatever the text is', () => {
    const random = seededRandom(5);
    const pieces = [
      'a1',
      'b2',
      ' ',
      '  ',
      '\n',
      '\n\n',
      '*',
      '**',
      '_',
      '`',
      '```',
      '> ',
      '- ',
      '1. ',
      '# ',
      '[',
      '](',
      ')',
      '<',
      '\\',
      '~~~',
      '\t',
    ];
    for (let round = 0; round < 400; round += 1) {
      const text = Array.from({ length: 60 }, () => pieces[Math.floor(random() * pieces.length)] ?? '').join('');
      const words = (each: string) => (each.match(/[ab]\d/g) ?? []).length;
      const left = JSON.stringify(draftBlocks(text));
      expect(words(left), JSON.stringify(text)).to.be.at.least(words(withoutInfo(text)));
    }
  });

  it('takes time by length alone on hostile texts, and nests no deeper than can be shown', () => {
    const size = 100 * 1024;
    const fill = (piece: string) => piece.repeat(Math.ceil(size / piece.length));
    const texts = [
      ...[
        '*',
        '_',
        '`',
        '>',
        '[',
        ']',
        '](',
        '[](',
        '[a](b',
        '**a',
        '*a ',
        '_a ',
        '> ',
        '>\n',
        '- ',
        '-\n',
        '1. ',
        '#',
        '# ',
        '~',
        '\\',
      ],
      ...[
        '`a``b',
        '<',
        '<http://',
        'http://',
        'http://a.',
        '![',
        '[[a](http://x)',
        '***',
        '*_',
        ' ',
        '\t',
        '\n',
        ' \n',
        '-',
        '- -',
        '\n- a\n  ',
        '🌳*',
      ],
      ...['[a](http://x "', '(', '[a](http://x(', 'a\n', '> - ', '1) > '],
    ].map(fill);
    texts.push(Array.from({ length: 440 }, (_, at) => '`'.repeat(at + 1)).join(' '));
    texts.push(Array.from({ length: 440 }, (_, at) => `${' '.repeat(at)}- a`).join('\n'));
    texts.push(`${fill('[')}](http://x)`, `${fill('*a')}${fill('a*')}`, `[a](http://${fill('x')}`, `${fill(' ')}x`);
    for (const text of texts) {
      const began = process.cpuUsage().user;
      const blocks = draftBlocks(text);
      // Some 20 ms at most; quadratic time is minutes.
      expect(process.cpuUsage().user - began, JSON.stringify(text.slice(0, 20))).to.be.below(3_000_000);
      expect(depthOf(blocks)).to.be.below(40);
    }
  });
});

/** A language behind a fence is shown elsewhere or not at all. */
function withoutInfo(text: string): string {
  return text.replace(/(```|~~~).*/g, '');
}

function shown(draft: string): readonly string[] {
  return draftBlocks(draft).map(inShort);
}

function inShort(block: Block): string {
  const all = (blocks: readonly Block[]) => blocks.map(inShort).join(' ');
  switch (block.kind) {
    case 'paragraph':
      return `p(${spell(block.inlines)})`;
    case 'heading':
      return `h${block.level}(${spell(block.inlines)})`;
    case 'quote':
      return `quote[${all(block.blocks)}]`;
    case 'list':
      return `${block.start === null ? 'ul' : `ol${block.start}`}[${block.items.map(all).join('|')}]`;
    case 'code':
      return `code(${block.text})`;
    case 'rule':
      return 'hr';
    default:
      return block satisfies never;
  }
}

function spelled(text: string): string {
  return spell(inlinesOf(text));
}

function spell(inlines: readonly Inline[]): string {
  return inlines
    .map((each) => {
      if (each.kind === 'text') return each.text;
      if (each.kind === 'code') return `code(${each.text})`;
      if (each.kind === 'break') return 'br()';
      if (each.kind === 'link') return `link:${each.href}(${spell(each.inlines)})`;
      return `${each.kind === 'strong' ? 'strong' : 'em'}(${spell(each.inlines)})`;
    })
    .join('');
}

function kindsIn(tree: unknown): readonly string[] {
  return [...JSON.stringify(tree).matchAll(/"kind":"(\w+)"/g)].map(([, kind = '']) => kind);
}

function depthOf(tree: unknown): number {
  if (typeof tree !== 'object' || tree === null) return 0;
  return 1 + Math.max(0, ...Object.values(tree).slice(0, 1_000).map(depthOf));
}
