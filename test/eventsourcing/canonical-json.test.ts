import { expect } from 'chai';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { seededRandom } from '../support/seeded-random.js';

/** RFC 8785, appendix B: IEEE 754 bits and the text they are written as. */
const NUMBERS: readonly (readonly [bits: string, text: string])[] = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
];

describe('Canonical JSON', () => {
  it('writes the example of RFC 8785, section 3.2.2', () => {
    const value: unknown = JSON.parse(`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`);
    expect(canonical(value)).to.equal(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('sorts members by UTF-16 code units, as in RFC 8785, section 3.2.3', () => {
    const value: unknown = JSON.parse(`{
      "\\u20ac": "Euro Sign", "\\r": "Carriage Return", "\\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\\ud83d\\ude00": "Emoji: Grinning Face", "\\u0080": "Control", "\\u00f6": "Latin Small Letter O With Diaeresis"
    }`);
    expect(canonical(value)).to.equal(
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    );
  });

  it('sorts integer-like names as texts', () => {
    expect(canonical({ b: 1, 9: 2, 10: 3, '-1': 4, '01': 5, a: 6 })).to.equal(
      '{"-1":4,"01":5,"10":3,"9":2,"a":6,"b":1}',
    );
  });

  it('sorts few and many members alike', () => {
    const random = seededRandom(7);
    for (let size = 0; size < 60; size += 1) {
      const names = Array.from({ length: size }, () => `name ${random().toString(36)}`);
      const text = [...names].sort().map((name) => `"${name}":0`);
      expect(canonical(Object.fromEntries(names.map((name) => [name, 0])))).to.equal(`{${text.join(',')}}`);
    }
  });

  it('writes the numbers of RFC 8785, appendix B', () => {
    for (const [bits, text] of NUMBERS) {
      expect(canonical(Buffer.from(bits, 'hex').readDoubleBE()), bits).to.equal(text);
    }
  });

  it('escapes what must be escaped and nothing else, in names too', () => {
    const text = '"\\/\b\f\n\r\t\u0000\u001f\u007f\u2028é漢🜁';
    const escaped = '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u007f\u2028é漢🜁"';
    expect(canonical(text)).to.equal(escaped);
    expect(canonical({ [text]: 1 })).to.equal(`{${escaped}:1}`);
  });

  it('writes names such as __proto__ and toString', () => {
    const value: unknown = JSON.parse('{"toString":1,"__proto__":{"b":1,"a":2},"constructor":null,"":0}');
    expect(canonical(value)).to.equal('{"":0,"__proto__":{"a":2,"b":1},"constructor":null,"toString":1}');
    expect(canonical(Object.assign(Object.create(null) as object, { b: 1, a: 2 }))).to.equal('{"a":2,"b":1}');
  });

  it('refuses what JSON cannot hold', () => {
    const refused: readonly unknown[] = [
      undefined,
      { a: undefined },
      [undefined],
      new Array(1),
      1n,
      () => 1,
      Symbol('a'),
      Number.NaN,
      Infinity,
      [-Infinity],
      '\ud800',
      { a: 'x\udc00' },
      { '\ud800': 1 },
      new Date(0),
      new Map(),
      [Object(1)],
    ];
    for (const value of refused) expect(() => canonical(value)).to.throw(TypeError);
  });

  it('refuses nesting deeper than 512, and cycles', () => {
    const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    expect(canonical(deep(512))).to.have.length(1_024);
    expect(() => canonical(deep(513))).to.throw(TypeError);
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    expect(() => canonical(cycle)).to.throw(TypeError);
  });
});
