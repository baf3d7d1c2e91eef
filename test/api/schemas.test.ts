import { readdirSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { JsonSchema, RequestName } from '../../src/api/schemas.js';
import { openSchemas, readRecord } from '../../src/api/schemas.js';
import { validators as longRequests } from '../../src/generated/long-requests.js';
import { validators as requests } from '../../src/generated/requests.js';
import { schemaCheck } from '../support/schema-check.js';

const FOLDER = new URL('../../../schemas/', import.meta.url);

describe('The schemas', () => {
  it('are valid schemas of draft 2020-12', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
    expect(names).to.include('run-start.json');
    for (const name of names) {
      const schema = readRecord(new URL(name, FOLDER));
      expect(ajv.validateSchema(schema), `${name}: ${ajv.errorsText()}`).to.equal(true);
    }
  });

  it('are read once', () => {
    const name = 'history-list.json';
    expect(openSchemas().document(name)).to.equal(openSchemas().document(name));
  });
});

describe('The generated validators', () => {
  for (const [reported, names] of [
    ['every broken rule', Object.keys(requests)],
    ['the first broken rule', Object.keys(longRequests)],
  ] as const) {
    it(`report ${reported} of a request exactly as ajv does at run time`, () => {
      for (const name of names.filter(isRequestName)) {
        const made = openSchemas().validator(name);
        const compiled = schemaCheck(name, name in requests);
        const samples = samplesOf(openSchemas().document(name));
        expect(samples).to.have.length.above(10);
        for (const sample of samples) {
          const why = `${name}: ${JSON.stringify(sample).slice(0, 200)}`;
          expect(made(sample), why).to.equal(compiled(sample));
          expect(made.errors, why).to.deep.equal(compiled.errors);
        }
      }
    });
  }
});

function isRequestName(name: string): name is RequestName {
  return name in requests || name in longRequests;
}

const inherited: unknown = Object.create({ input_topic: 'inherited' });

/** Values of every type, short and long, within and beyond most limits. */
const VALUES: readonly unknown[] = [
  ...[null, true, 0, -1, 0.5, 1, 1e9, '', 'x', '🌳'.repeat(70), 'x'.repeat(70_000), 'approve', 'a b/c', [], {}],
  ...[['x'], [null, 1, 'x'], [{}], { x: 1 }, inherited],
];

/** A request with each field of a schema set to each of the values, one at a time and all of them together. */
function samplesOf({ properties = {} }: JsonSchema): readonly unknown[] {
  const names = [...Object.keys(properties), 'unknown', 'constructor'];
  const single = names.flatMap((name) => VALUES.map((value) => ({ [name]: value })));
  const joint = VALUES.map((value) => Object.fromEntries(names.map((name) => [name, value])));
  return [...VALUES, ...single, ...joint, ...NODES.map((node) => ({ name: 'N', nodes: [node], edges: [node] }))];
}

/** Items for the lists of a blueprint. */
const NODES: readonly unknown[] = [
  { id: 'a', type: 'agent', name: 'A', prompt: 'Write.', from: 'a', to: 'a' },
  ...VALUES.map((value) => ({ id: value, type: value, name: value, config: value, from: value, source: value })),
];
