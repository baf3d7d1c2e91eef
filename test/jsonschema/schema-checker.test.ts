import { expect } from 'chai';
import type { JsonSchema } from '../../src/jsonschema/schema-checker.js';
import { SchemaChecker } from '../../src/jsonschema/schema-checker.js';
import { nodeSystem } from '../../src/system/system.js';

const LIKE_A_SCHEMA = { $ref: 'https://example.org/schema', pattern: '(' };

describe('The check of a JSON Schema', () => {
  let checker: SchemaChecker;

  before(() => (checker = new SchemaChecker(nodeSystem())));
  after(() => checker.stop());

  const nested = (levels: number): JsonSchema => {
    let schema: JsonSchema = {};
    for (let level = 0; level < levels; level += 1) schema = { not: schema };
    return schema;
  };
  /** Each definition has the next one twice, so that a check takes two to the power of their number. */
  const doubling = (): JsonSchema => {
    const names = Array.from({ length: 60 }, (_, index) => `d${index}`);
    const $defs = Object.fromEntries(
      names.map((name, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` };
        return [name, { allOf: [next, next] }];
      }),
    );
    return { $ref: '#/$defs/d0', $defs: { ...$defs, d60: { type: 'string' } } };
  };

  it('accepts what usual programs send', async () => {
    for (const schema of [
      {},
      { type: 'object', properties: { a: { type: ['string', 'null'] } }, required: ['a'], additionalProperties: false },
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        definitions: { a: { type: 'string' } },
        $ref: '#/definitions/a',
      },
      { $defs: { tree: { type: 'array', items: { $ref: '#/$defs/tree' } } }, $ref: '#/$defs/tree' },
      { anyOf: [{ const: 1 }, { type: 'string', format: 'date-time', pattern: '^[0-9]{4}-' }] },
      { title: 'x', description: 'x', default: {}, examples: [1], $comment: 'x', deprecated: true },
      // What is not read as a schema, and properties with the names of keywords.
      { const: LIKE_A_SCHEMA, default: LIKE_A_SCHEMA, examples: [LIKE_A_SCHEMA] },
      { enum: [LIKE_A_SCHEMA] },
      {
        type: 'object',
        properties: { $ref: { type: 'string' }, pattern: {}, enum: {}, patternProperties: { $ref: '#' } },
      },
    ])
      expect(await checker.faultOf(schema), JSON.stringify(schema)).to.equal(null);
  });

  for (const [what, schema, fault] of [
    [
      'an unknown type',
      { properties: { a: { type: 'nothing' } } },
      '/properties/a/type must be equal to one of the allowed',
    ],
    ['an unknown keyword', { kind: 'object' }, 'unknown keyword'],
    ['an unknown format', { type: 'string', format: 'nothing' }, 'unknown format'],
    ['a reference to another document', { $ref: 'https://example.org/schema' }, 'only references to itself'],
    ['a nested reference to another document', { items: { $ref: 'other.json#/a' } }, 'only references to itself'],
    [
      'such a reference of a property named so',
      { properties: { const: { $ref: 'b.json' } } },
      'only references to itself',
    ],
    ['a reference to nothing', { $ref: '#/$defs/nothing' }, "can't resolve reference"],
    ['a pattern that is none', { type: 'string', pattern: '(' }, 'Invalid regular expression'],
    ['another dialect', { $schema: 'https://example.org/dialect' }, 'no schema with key or ref'],
    ['an asynchronous schema', { $async: true }, 'asynchronous'],
    ['more than 32 KiB', { enum: Array.from({ length: 10_000 }, (_, index) => index) }, 'at most 32768'],
  ] as const)
    it(`refuses ${what}`, async () => expect(await checker.faultOf(schema)).to.include(fault));

  for (const [what, schema] of [
    ['an exponential pattern', { pattern: '^(a+)+$' }],
    ['a pattern of overlapping choices', { properties: { a: { pattern: '^(a|a)*$' } } }],
    ['an exponential pattern of a property named so', { properties: { enum: { pattern: '^(a+)+$' } } }],
    ['an exponential pattern of names', { patternProperties: { '^(\\w+\\s?)*$': {} } }],
    ['definitions that double at each level', doubling()],
  ] as const)
    it(`refuses ${what} after a second, and goes on`, async () => {
      expect(await checker.faultOf(schema)).to.equal('its check takes longer than 1000 ms');
      expect(await checker.faultOf({ type: 'string' })).to.equal(null);
    });

  it('survives a schema that is nested deeper than its stack', async () => {
    expect(await checker.faultOf(nested(2_000))).to.be.a('string');
    expect(await checker.faultOf({ type: 'string' })).to.equal(null);
  });

  it('lets a schema wait at most 2 s behind hostile ones, and checks the next one', async () => {
    const hostile = Array.from({ length: 20 }, (_, index) => ({ type: 'string', pattern: `^(a+)+${index}$` }));
    const answers = Promise.allSettled(hostile.map((schema) => checker.faultOf(schema)));
    const sentAt = performance.now();
    const answer = await checker.faultOf({ type: 'string' }).catch((error: unknown) => error);
    expect(performance.now() - sentAt).to.be.below(2_700);
    expect(answer).to.have.property('code', 'schemas.busy');
    const refused = (await answers).filter(({ status }) => status === 'rejected');
    expect(refused).to.have.length.within(16, 19);
    expect(performance.now() - sentAt).to.be.below(5_000);
    expect(await checker.faultOf({ type: 'string' })).to.equal(null);
  });

  it('answers many schemas in order, and each by itself', async () => {
    const types = ['string', 'nothing', 'object', 'none'];
    const faults = await Promise.all(types.map((type) => checker.faultOf({ type })));
    expect(faults.map((fault) => fault === null)).to.deep.equal([true, false, true, false]);
  });
});

describe('The check of a value by a JSON Schema', () => {
  let checker: SchemaChecker;

  before(() => (checker = new SchemaChecker(nodeSystem())));
  after(() => checker.stop());

  it('names the place and the rule of each error', async () => {
    const schema = {
      type: 'object',
      properties: { a: { enum: ['x', 'y'] }, b: { items: { minimum: 3, type: 'number' } } },
      required: ['a', 'c'],
      additionalProperties: false,
    };
    expect(await checker.errorsOf(schema, { a: 'z', b: [5, 1], d: 1 })).to.have.members([
      "The value must have required property 'c'",
      'The value must NOT have additional properties: "d"',
      '/a must be equal to one of the allowed values: ["x","y"]',
      '/b/1 must be >= 3',
    ]);
    expect(await checker.errorsOf(schema, { a: 'x', c: 1, b: [] })).to.have.lengthOf(1);
  });

  it('checks formats, and fields of the value itself alone', async () => {
    expect(await checker.errorsOf({ type: 'string', format: 'date' }, '2026-02-30')).to.have.lengthOf(1);
    expect(await checker.errorsOf({ type: 'object', required: ['constructor'] }, {})).to.have.lengthOf(1);
  });

  it('is an error if it takes longer than a second', async () => {
    const errors = await checker.errorsOf({ type: 'string', pattern: '^(b+)+$' }, `${'b'.repeat(60)}!`);
    expect(errors).to.deep.equal(['its check takes longer than 1000 ms']);
  });

  it('is never that of the task before, whose thread answered just after its time', async () => {
    let ms = 10_000;
    const impatient = new SchemaChecker({ after: (_, callback) => nodeSystem().after(ms, callback) });
    const [list, record] = [{ type: 'array' }, { type: 'object' }];
    for (let round = 0; round < 10; round += 1) {
      ms = 10_000;
      await impatient.errorsOf(record, {});
      ms = 10;
      const slow = impatient.errorsOf(record, 'x');
      const next = impatient.errorsOf(list, 'x');
      await new Promise(setImmediate);
      ms = 10_000;
      // The time ends and the thread answers before this thread sees either.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
      expect((await slow).join()).to.match(/takes longer|must be object/);
      expect(await next).to.deep.equal(['The value must be array']);
    }
    await impatient.stop();
  });
});
