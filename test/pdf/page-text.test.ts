import { expect } from 'chai';
import { textOfPages } from '../../src/pdf/layout/page-text.js';
import type { TextRun } from '../../src/pdf/layout/text-run.js';

const run = (text: string, x: number, baseline: number, more: Partial<TextRun> = {}): TextRun => ({
  text,
  x,
  baseline,
  width: [...text].length * 5,
  size: 10,
  angle: 0,
  ...more,
});
const lines = (texts: readonly string[], x = 0): readonly TextRun[] =>
  texts.map((text, index) => run(text, x, 12 * (index + 1)));
const textOf = (runs: readonly TextRun[]): string => textOfPages([runs])[0] ?? '';

describe('The text of a page', () => {
  it('is empty without runs, or with only blank runs', () => {
    expect(textOfPages([[], [run('   ', 0, 0)]])).to.deep.equal(['', '']);
  });

  it('has spaces at gaps, but not between kerned letters', () => {
    const runs = [run('Ta', 0, 10), run('ble', 9.5, 10), run('of', 26.5, 10), run('one', 38.2, 10)];
    expect(textOf(runs)).to.equal('Table of one');
  });

  it('contains a text once that is drawn twice to look bold', () => {
    expect(textOf([run('bold', 0, 10), run('bold', 0.3, 10), run('bold', 45, 10)])).to.equal('bold\tbold');
  });

  it('has a blank line before a paragraph that is spaced, larger or indented', () => {
    expect(textOf([run('one', 0, 10), run('two', 0, 22), run('three', 0, 34), run('four', 0, 60)])).to.equal(
      'one\ntwo\nthree\n\nfour',
    );
    expect(textOf([run('Heading', 0, 10, { size: 14 }), run('text', 0, 24)])).to.equal('Heading\n\ntext');
    expect(textOf([run('one', 0, 10), run('two', 0, 22), run('three', 15, 34), run('four', 0, 46)])).to.equal(
      'one\ntwo\n\nthree\nfour',
    );
  });

  it('keeps the hyphen of a compound that occurs elsewhere, and between names or numbers', () => {
    expect(textOf(lines(['It is well-', 'known, a well-known one']))).to.equal('It is well-known,\na well-known one');
    expect(textOf(lines(['a mixed mode, mixed-', 'mode it is']))).to.equal('a mixed mode, mixed-mode\nit is');
    expect(textOf(lines(['the read-', 'er of Anglo-', 'Saxon and 2019-', '20']))).to.equal(
      'the reader\nof Anglo-Saxon\nand 2019-\n20',
    );
  });

  it('joins a word that is hyphenated over three lines, and keeps dashes', () => {
    expect(textOf(lines(['con-', 'stitu-', 'tional law -', 'or not']))).to.equal('constitutional\nlaw -\nor not');
  });

  it('does not join words across pages', () => {
    expect(textOfPages([lines(['an exam-']), lines(['ple'])])).to.deep.equal(['an exam-', 'ple']);
  });

  it('omits control characters and is well-formed', () => {
    expect(textOf([run('a\u0000b\u200Bc\uD800d\uFEFF', 0, 10)])).to.equal('abc\uFFFDd');
  });

  it('combines accents with their letters', () => {
    expect(textOf([run('Universit\u00B4e na\u00A8ıve e\u0301', 0, 10)])).to.equal('Université naïve é');
  });

  it('has right-to-left scripts in reading order', () => {
    expect(textOf([run('שלום', 60, 10), run('עולם', 35, 10)])).to.equal('שלום עולם');
  });

  it('is in reading order on a rotated page', () => {
    const turned = lines(['first line', 'second line']).map(({ x, baseline, ...each }) => ({
      ...each,
      angle: 90,
      x: baseline,
      baseline: -x,
    }));
    expect(textOf(turned)).to.equal('first line\nsecond line');
  });

  it('accepts any coordinates without an error', () => {
    const odd = [NaN, Infinity, -1, 0, 1e300].flatMap((value) => [
      run('a', value, 10),
      run('b', 0, value),
      run('c', 0, 10, { width: value }),
      run('d', 0, 10, { size: value }),
      run('e', 0, 10, { angle: value }),
    ]);
    expect(textOf(odd)).to.be.a('string');
  });

  it('is computed in time for thousands of runs in one place', () => {
    const many = Array.from({ length: 5_000 }, (_, index) => run(`w${index}`, 0, 10));
    expect(textOf(many)).to.contain('w4999');
  });
});
