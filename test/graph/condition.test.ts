import { expect } from 'chai';
import type { ConditionFacts } from '../../src/graph/condition.js';
import { ConditionInvalid, MAX_CONDITION_CHARS, parseCondition } from '../../src/graph/condition.js';
import { EMPTY_BRANCH } from '../../src/run/frontier/branch.js';
import { conditionFacts } from '../../src/run/frontier/output.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK } from '../support/soak.js';

const CASES = IS_SOAK ? 100_000 : 5_000;

const NOTHING_YET: ConditionFacts = {
  route: null,
  score: null,
  iteration: 0,
  draftLength: () => 0,
  agreement: null,
  spread: null,
};

function holds(text: string, facts: Partial<ConditionFacts> = {}): boolean {
  return parseCondition(text).holds({ ...NOTHING_YET, ...facts });
}

/** The error of a text, or null if it is valid. */
function refusal(text: string): ConditionInvalid | null {
  try {
    parseCondition(text);
    return null;
  } catch (error) {
    if (error instanceof ConditionInvalid) return error;
    throw error;
  }
}

describe('A condition', () => {
  for (const word of ['approve', 'rework', ' approve ', 'publish_now', 'not-yet', 'Prüfen']) {
    it(`as the bare word "${word}" is compared with the route`, () => {
      expect(holds(word, { route: word.trim() })).to.equal(true);
      expect(holds(word, { route: 'other' })).to.equal(false);
      expect(holds(word)).to.equal(false);
      expect(parseCondition(word).word).to.equal(word.trim());
    });
  }

  for (const [text, at7, at8, at9] of [
    ['score < 8', true, false, false],
    ['score <= 8', true, true, false],
    ['score > 8', false, false, true],
    ['score >= 8', false, true, true],
    ['score == 8', false, true, false],
    ['score != 8', true, false, true],
    ['8 > score', true, false, false],
    ['score>=7.5', false, true, true],
    ['!(score < 8)', false, true, true],
    ['score > 7 && score < 9', false, true, false],
    ['score < 8 || score > 8', true, false, true],
    ['score == 7 || score == 8 && route == "x"', true, false, false],
    ['(score == 7 || score == 8) && !(score == 8)', true, false, false],
    ['!!(score == 9)', false, false, true],
    ['(score) < 8', true, false, false],
    ['((score)) == (8)', false, true, false],
    ['8 <= (score) && !((score) >= 9)', false, true, false],
    ['((score) < 8) || (((score) > (8)))', true, false, true],
    ['!(score) < 8', false, true, true],
    ['score >= 8e0 && score < 0.9e+1', false, true, false],
    ['score < 80E-1', true, false, false],
  ] as const) {
    it(`reads ${text}`, () => {
      expect([7, 8, 9].map((score) => holds(text, { score }))).to.deep.equal([at7, at8, at9]);
      expect(parseCondition(text).word).to.equal(null);
    });
  }

  it('sees the iteration, the route in either quotes, and negative numbers', () => {
    expect(holds('iteration >= 2', { iteration: 2 })).to.equal(true);
    expect(holds(`route == "approve" && route != 'rework'`, { route: 'approve' })).to.equal(true);
    expect(holds(String.raw`route == "a\"\\b"`, { route: 'a"\\b' })).to.equal(true);
    expect(holds('route == "a\\\nb"', { route: 'a\nb' })).to.equal(true);
    expect(holds('iteration > -1')).to.equal(true);
  });

  it('sees agreement and spread, which no comparison but != finds before they exist', () => {
    for (const name of ['agreement', 'spread']) {
      const compared = ['<', '<=', '>', '>=', '==', '!='].map((sign) => `${name} ${sign} 0.5`);
      expect(compared.map((text) => holds(text))).to.deep.equal([false, false, false, false, false, true]);
      const facts = { [name]: 0.5 };
      expect(compared.map((text) => holds(text, facts))).to.deep.equal([false, true, false, true, true, false]);
    }
    expect(holds('agreement < 0.5 && spread > 3', { agreement: 0.4, spread: 4 })).to.equal(true);
    expect(refusal('spread')?.data.position).to.equal(6);
  });

  it('counts code points as draft_length, 0 without a draft', () => {
    const isLong = (length: number, draft: string | null): boolean =>
      parseCondition(`draft_length == ${length}`).holds(conditionFacts({ ...EMPTY_BRANCH, draft }, 0));
    expect([isLong(3, '🌳é\n'), isLong(1, '\ud800'), isLong(0, null)]).to.deep.equal([true, true, true]);
  });

  for (const operator of ['<', '<=', '>', '>=', '==']) {
    it(`with ${operator} is false without a value`, () => {
      expect([holds(`score ${operator} 5`), holds(`5 ${operator} score`)]).to.deep.equal([false, false]);
      expect([holds(`route ${operator} "approve"`), holds(`score ${operator} route`)]).to.deep.equal([false, false]);
    });
  }

  it('with != is true without a value', () => {
    expect([holds('score != 5'), holds('"approve" != route'), holds('score != route')]).to.deep.equal([
      true,
      true,
      true,
    ]);
    expect(holds('!(score != 5)')).to.equal(false);
  });

  it('compares values of two types as unequal and unordered', () => {
    expect(holds('score == "8"', { score: 8 })).to.equal(false);
    expect(holds('score != "8"', { score: 8 })).to.equal(true);
  });

  it('compares texts for equality only', () => {
    for (const operator of ['<', '<=', '>', '>=']) {
      expect(holds(`"b" ${operator} "a"`)).to.equal(false);
      expect(holds(`route ${operator} "b"`, { route: 'b' })).to.equal(false);
    }
    expect(holds('route == "b"', { route: 'b' })).to.equal(true);
  });

  it('explains the form of numbers at an invalid one', () => {
    for (const number of ['.5', '1e', '1e3.5', '1e+', '5.', '+8', '- 1', '0x10', '8_000', '1.2.3']) {
      expect(refusal(`score < ${number}`)?.message).to.match(
        /position 8: numbers are written as in 8, 0\.5, -1 or 2e3$/,
      );
    }
    expect(refusal('score ~ 8')?.message).to.match(/position 6: this cannot be read$/);
  });

  for (const [text, position] of [
    ['', 0],
    ['   ', 3],
    ['score', 5],
    ['score >', 7],
    ['score = 8', 6],
    ['score > 8 score', 10],
    ['(score > 8', 10],
    ['score > 8)', 9],
    ['approve && score > 8', 0],
    ['1 < 2 < 3', 6],
    ['score > 8 & route == "x"', 10],
    ['route == "x', 9],
    ['score > 1e3x', 8],
    ['score > 1e999', 8],
    ['(score)', 7],
    ['(score > 8', 10],
    ['(score > 8) < 3', 12],
    ['()', 1],
    ['(score iteration) > 1', 7],
    [`score > ${'9'.repeat(400)}`, 8],
    ['constructor > 1', 0],
    ['score > __proto__', 8],
    ['score > 8; 1', 9],
    ['`x`', 0],
    ['\ud800', 0],
  ] as const) {
    it(`refuses ${JSON.stringify(text.slice(0, 30))} at ${position}`, () => {
      expect(refusal(text)?.data.position).to.equal(position);
    });
  }

  it('refuses a text beyond the limits of length and nesting', () => {
    expect(refusal('x'.repeat(MAX_CONDITION_CHARS + 1))).not.to.equal(null);
    expect(refusal('x'.repeat(MAX_CONDITION_CHARS))).to.equal(null);
    const nested = (depth: number): string => '('.repeat(depth) + 'score > 1' + ')'.repeat(depth);
    expect(refusal(nested(32))).to.equal(null);
    expect(refusal(nested(33))).not.to.equal(null);
    expect(refusal('!'.repeat(900))).not.to.equal(null);
    expect(refusal(`${'('.repeat(33)}score${')'.repeat(33)} > 1`)).not.to.equal(null);
    expect(refusal(Array.from({ length: 70 }, () => 'score > 1').join('||'))).to.equal(null);
  });

  it(`throws only its own error for any text (${CASES} seeded texts)`, () => {
    const random = seededRandom(4);
    let read = 0;
    for (let round = 0; round < CASES; round += 1) {
      const text = randomText(random);
      const found = refusal(text);
      if (found === null) {
        read += 1;
        expect(parseCondition(text).holds({ ...NOTHING_YET, score: 8, draftLength: () => 1 })).to.be.a('boolean');
      } else expect(found.data.position).to.be.within(0, text.length);
    }
    expect(read).to.be.within(CASES / 100, CASES);
  });
});

const PIECES = [
  ...['score', 'iteration', 'route', 'draft_length', 'approve', 'rework', '<', '<=', '>', '>=', '==', '!='],
  ...['&&', '||', '!', '(', ')', '"x"', "'y'", '8', '7.5', '-1', ' ', ' '],
];
const NOISE = ['\\', '"', "'", '\u0000', '\ud800', '🌳', '=', '&', '|', '.', '[', '${', '\n', '__proto__', '9e9', '-'];

/** Mostly conditions with errors in them, sometimes any text. */
function randomText(random: () => number): string {
  const pick = (from: readonly string[]): string => from[Math.floor(random() * from.length)] ?? '';
  const noisy = random() < 0.3;
  if (random() < 0.2) {
    const compare = (): string =>
      `${pick(PIECES.slice(0, 4))}${pick(PIECES.slice(6, 12))}${pick(PIECES.slice(17, 22))}`;
    return Array.from({ length: 1 + Math.floor(random() * 4) }, compare).join(pick(['&&', '||', ' ']));
  }
  return Array.from({ length: Math.floor(random() * 14) }, () =>
    noisy && random() < 0.3 ? pick(NOISE) : pick(PIECES),
  ).join(random() < 0.5 ? ' ' : '');
}
