import { expect } from 'chai';
import { lineDiff } from '../../../src/cli/terminal/state-diff.js';
import { seededRandom } from '../../support/seeded-random.js';

const SEED = Number(process.env['SEED'] ?? 20260108);
const PAIRS = process.env['SOAK'] === undefined ? 3_000 : 100_000;

describe(`The difference between two texts (SEED=${SEED})`, () => {
  it(`changes the fewest lines, for ${PAIRS} pairs`, () => {
    const random = seededRandom(SEED);
    const some = (): readonly string[] =>
      Array.from({ length: Math.floor(random() * 12) }, () => 'abcd'.charAt(Math.floor(random() * 4)));
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const [before, after] = [some(), some()];
      const changes = lineDiff(before, after);
      const without = (kind: string) => changes.filter((each) => each.kind !== kind).map(({ text }) => text);
      expect(without('added')).to.deep.equal(before);
      expect(without('removed')).to.deep.equal(after);
      const kept = changes.filter(({ kind }) => kind === 'same').length;
      expect(kept, `${before.join('')} to ${after.join('')}`).to.equal(longestCommon(before, after));
    }
  });

  it('replaces everything between the common lines if too many lines differ', () => {
    const lines = (name: string): readonly string[] => [
      'head',
      ...Array.from({ length: 5_000 }, (_, i) => `${name} ${i}`),
      'tail',
    ];
    const changes = lineDiff(lines('old'), lines('new'));
    expect(changes.filter(({ kind }) => kind === 'same').map(({ text }) => text)).to.deep.equal(['head', 'tail']);
    expect(changes).to.have.lengthOf(10_002);
  });
});

function longestCommon(before: readonly string[], after: readonly string[]): number {
  let row = new Array<number>(after.length + 1).fill(0);
  for (const line of before) {
    const next = [0];
    after.forEach((other, index) =>
      next.push(line === other ? (row[index] ?? 0) + 1 : Math.max(row[index + 1] ?? 0, next[index] ?? 0)),
    );
    row = next;
  }
  return row.at(-1) ?? 0;
}
