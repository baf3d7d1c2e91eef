import { expect } from 'chai';
import type { DraftNode } from '../../src/draft/draft-tree.js';
import { draftTree } from '../../src/draft/draft-tree.js';
import { tokensOf } from '../../src/draft/markdown.js';
import { hostileTexts } from '../support/hostile-texts.js';
import { seededRandom } from '../support/seeded-random.js';

/** The signs that begin a block. */
const STARTS = ['| ', '[^1]: ', '> ', '- ', '1. ', '# '];

const treeOf = (draft: string): readonly DraftNode[] => draftTree(tokensOf(draft));

describe('The Markdown of a draft', () => {
  it('contains paragraphs, and headings from level 3 on', () => {
    expect(shown('# Title\n## Part\nText on\ntwo lines\n\nNext\n###### Deep')).to.equal(
      'h3(Title) h4(Part) p(Text on\ntwo lines) p(Next) h6(Deep)',
    );
    expect(shown('#hashtag\n\n#')).to.equal('p(#hashtag) h3()');
  });

  it('contains nested lists, which keep their first number', () => {
    expect(shown('- one\n- two\n  more\n  - inner\n- three')).to.equal(
      'ul(li(one) li(two\nmore ul(li(inner))) li(three))',
    );
    expect(shown('- loose\n\n- items')).to.equal('ul(li(p(loose)) li(p(items)))');
    expect(shown('4) a\n5) b\n* c')).to.equal('ol start=4(li(a) li(b)) ul(li(c))');
    expect(shown('It was in\n1999. A good year.')).to.equal('p(It was in\n1999. A good year.)');
  });

  it('contains quotes, rules, and code with unchanged signs', () => {
    expect(shown('> said\n> > twice\n\n---\n* * *')).to.equal('blockquote(p(said) blockquote(p(twice))) hr() hr()');
    expect(shown('```ts\n# no *heading*\n\n<b>\n```\nafter')).to.equal(
      'pre title=ts(code(# no *heading*\n\n<b>)) p(after)',
    );
    expect(shown('~~~\nstill being written')).to.equal('pre(code(still being written))');
  });

  it('is read in time that grows with its length, however many addresses stand in a line', () => {
    const processorMs = (unit: string, bytes: number): number => {
      const { user, system } = process.cpuUsage();
      tokensOf(unit.repeat(bytes / unit.length));
      const after = process.cpuUsage();
      return (after.user - user + after.system - system) / 1_000;
    };
    for (const unit of ['//a.b/', '"http://a.b/"', 'http://a.b/ ', 'mailto:a@b.c ', '(https://a.b/', '"//a.b/"']) {
      tokensOf(unit.repeat(1_000));
      const [short, long] = [processorMs(unit, 16_384), processorMs(unit, 131_072)];
      // Eight times the text: 64 times the time if it grew with the square.
      expect(long, `${unit}: ${short} ms for an eighth`).to.be.below(32 * Math.max(short, 5));
    }
  });

  it('has no links without a scheme', () => {
    expect(shown('//a.example/b and https://a.example/b')).to.match(/^p\(\/\/a\.example\/b and a .*\)$/);
  });

  it('contains tables with aligned columns', () => {
    expect(shown('| a | b |\n|:-:|--:|\n| **1** | 2 |\n| 3')).to.equal(
      'table(thead(tr(th align=center(a) th align=right(b))) ' +
        'tbody(tr(td align=center(strong(1)) td align=right(2)) tr(td align=center(3) td align=right())))',
    );
  });

  it('contains open and completed tasks, only in list items', () => {
    expect(shown('- [ ] a\n- [x] *b*\n\n1. [X] c')).to.equal(
      'ul(li(input isChecked=false()a) li(input isChecked=true() em(b))) ol(li(input isChecked=true()c))',
    );
    expect(shown('[x] no task\n\n- [y] none')).to.equal('p([x] no task) ul(li([y] none))');
  });

  it('contains footnotes at their original place', () => {
    expect(shown('Oaks[^1] grow[^none].\n\n[^1]: See *there*.\n\n[^2]: Nobody asks.')).to.equal(
      'p(Oaks sup(1) grow[^none].) aside(sup(1) p(See em(there).)) aside(sup(2) p(Nobody asks.))',
    );
  });

  it('contains emphasis, strikethrough, inline code and line breaks', () => {
    expect(shown('a *b* **c** ***d*** _e_ ~~f~~')).to.equal('p(a em(b) strong(c) em(strong(d)) em(e) s(f))');
    expect(shown('snake_case_name 2 * 3 * 4 **')).to.equal('p(snake_case_name 2 * 3 * 4 **)');
    expect(shown('`a*b*` ``c*d`` `open')).to.equal('p(code(a*b*) code(c*d) `open)');
    expect(shown('one  \ntwo\\\nthree\nfour')).to.equal('p(one br()two br()three\nfour)');
    expect(shown('\\*not\\* \\a')).to.equal('p(*not* \\a)');
  });

  it('contains links only to http, https and mailto', () => {
    expect(shown('[a *b*](https://x.test/y_(z) "t") <mailto:a@b.test>')).to.equal(
      'p(a href=https://x.test/y_(z) title=t(a em(b)) a href=mailto:a@b.test(mailto:a@b.test))',
    );
    expect(shown('See https://x.test/a_b, or (http://y.test). Not x.test, main.py or a@b.test.')).to.equal(
      'p(See a href=https://x.test/a_b(https://x.test/a_b), or (a href=http://y.test(http://y.test)). ' +
        'Not x.test, main.py or a@b.test.)',
    );
    expect(shown('![tree](https://x.test/t.png)')).to.equal('p(a href=https://x.test/t.png(tree))');
    expect(shown('[![tree](https://x.test/t.png)](https://x.test)')).to.equal('p(a href=https://x.test(tree))');
    for (const href of [
      'javascript:alert(1)',
      'JAVASCRIPT:x',
      'java&#115;cript:x',
      'data:text/html,x',
      'data:image/png;base64,x',
      'vbscript:x',
      'file:///etc',
      '/path',
      '//x.test',
      'java\tscript:x',
      '',
    ]) {
      const draft = `[a](${href}) [b](<${href}>) <${href}> ![c](${href}) ${href}`;
      expect(elementsIn(treeOf(draft)), href).not.to.include('a');
    }
  });

  it('shows HTML and other markup languages as text', () => {
    for (const text of hostileTexts()) {
      for (const tag of elementsIn(treeOf(text))) expect(tag).not.to.match(/html|img|script/);
    }
    const html = '<img src=x onerror=alert(1)> <a href="javascript:x">y</a>';
    expect(treeOf(html)).to.deep.equal([{ tag: 'p', children: [html] }]);
    expect(treeOf(`<div>\n${html}\n</div>`)).to.deep.equal([{ tag: 'p', children: [`<div>\n${html}\n</div>`] }]);
  });

  it('shows misleading links and too deeply nested blocks as source text', () => {
    expect(shown('[a]: https://x.test "hidden"')).to.include('hidden');
    for (const deep of ['>'.repeat(5_000), '- '.repeat(5_000), '> - '.repeat(60)]) {
      expect(JSON.stringify(treeOf(`${deep}hidden`)), deep.slice(0, 4)).to.include('hidden');
    }
  });

  it('contains every word of any text', () => {
    const random = seededRandom(5);
    const pieces = [
      ...'a1 b2 * ** _ ` ~~ ``` [ ]( ) < \\ ~~~'.split(' '),
      ...[' ', '  ', '\n', '\n\n', '\t'],
      ...STARTS,
    ];
    for (let round = 0; round < 400; round += 1) {
      const text = Array.from({ length: 60 }, () => pieces[Math.floor(random() * pieces.length)] ?? '').join('');
      const words = (each: string) => (each.match(/[ab]\d/g) ?? []).length;
      const left = JSON.stringify(treeOf(text));
      expect(words(left), JSON.stringify(text)).to.be.at.least(words(withoutInfo(text)));
    }
  });

  it('is parsed in linear time with limited nesting, for hostile texts', () => {
    const size = 100 * 1024;
    const fill = (piece: string) => piece.repeat(Math.ceil(size / piece.length));
    const signs =
      '* _ ` > [ ] ]( []( [a](b **a # ~ \\ `a``b < <http:// http:// http://a. mailto: mailto:a@ &amp; | [^a] ~~a'.split(
        ' ',
      );
    const more = '&# ![ [[a](http://x) *** *_ - 🌳* ( [a](http://x('.split(' ');
    const spaced = [
      '*a ',
      '_a ',
      '>\n',
      '-\n',
      '|a\n|-\n',
      ' ',
      '\t',
      '\n',
      ' \n',
      '- -',
      '\n- a\n  ',
      '[a](http://x "',
      'a\n',
    ];
    const texts = [...signs, ...more, ...spaced, ...STARTS, '[^a]: ', '> - ', '1) > '].map(fill);
    texts.push(Array.from({ length: 440 }, (_, at) => '`'.repeat(at + 1)).join(' '));
    texts.push(Array.from({ length: 440 }, (_, at) => `${' '.repeat(at)}- a`).join('\n'));
    texts.push(`${fill('[')}](http://x)`, `${fill('*a')}${fill('a*')}`, `[a](http://${fill('x')}`, `${fill(' ')}x`);
    texts.push('`a` '.repeat(120_000), `http://x.test/${fill('*')}a`);
    for (const text of texts) {
      const began = process.cpuUsage().user;
      const tree = treeOf(text);
      // It takes about 0.1 s. Quadratic time would take minutes.
      expect(process.cpuUsage().user - began, JSON.stringify(text.slice(0, 20))).to.be.below(5_000_000);
      expect(depthOf(tree)).to.be.below(250);
    }
  });
});

/** Removes the language after a fence, which is not shown. */
function withoutInfo(text: string): string {
  return text.replace(/(```|~~~).*/g, '');
}

function shown(draft: string): string {
  return spelled(treeOf(draft));
}

/** Elements as `tag attribute=value(children)`. */
function spelled(nodes: readonly DraftNode[]): string {
  return nodes
    .map((node, at) => {
      if (typeof node === 'string') return node;
      const { tag, children, ...attributes } = node;
      const words = Object.entries(attributes).map(([name, value]) => ` ${name}=${value}`);
      const before = nodes[at - 1];
      const isApart = at > 0 && (typeof before !== 'string' || !/\s$|\($/.test(before));
      return `${isApart ? ' ' : ''}${tag}${words.join('')}(${spelled(children)})`;
    })
    .join('');
}

function elementsIn(nodes: readonly DraftNode[]): readonly string[] {
  return nodes.flatMap((node) => (typeof node === 'string' ? [] : [node.tag, ...elementsIn(node.children)]));
}

function depthOf(nodes: readonly DraftNode[]): number {
  return nodes.reduce(
    (most, node) => (typeof node === 'string' ? most : Math.max(most, 1 + depthOf(node.children))),
    0,
  );
}
