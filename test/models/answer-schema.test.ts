import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { ModelRequest } from '../../src/models/port.js';
import { REQUEST } from '../support/model-requests.js';
import { answerSchema } from '../../src/models/answer-schema.js';

function written(name: string): object {
  return JSON.parse(readFileSync(new URL(`../../../schemas/${name}.json`, import.meta.url), 'utf8')) as object;
}

/** All schemas of objects within a schema. */
function objectsIn(schema: unknown): readonly Record<string, unknown>[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'type' in schema && schema.type === 'object' ? [schema as Record<string, unknown>] : [];
  return [...own, ...Object.values(schema).flatMap(objectsIn)];
}

const ANALYSIS = {
  consensus: ['x'],
  contradictions: [{ topic: 'x', stances: [{ response: 'B', stance: 'x' }] }],
  partial_coverage: [{ responses: ['B', 'D'], point: 'x' }],
  unique_insights: [{ response: 'D', insight: 'x' }],
  blind_spots: [],
};

const schemaOf = (answer: ModelRequest['answer'], letters: readonly string[]) => {
  const answers = letters.map((letter) => ({ letter, text: '' }));
  return answerSchema({ ...REQUEST, answer, promptInput: { ...REQUEST.promptInput, answers } });
};

describe('answerSchema', () => {
  const validate = (answer: 'ranking' | 'analysis', data: unknown): boolean => {
    const schema: object = schemaOf(answer, ['B', 'D']) ?? {};
    return new Ajv2020({ strict: true }).validate(schema, data);
  };

  it('has none for prose', () => expect(schemaOf('draft', [])).to.equal(null));

  it('lets a ranking name the letters shown alone', () => {
    expect(validate('ranking', { ranking: ['D', 'B'], comment: '' })).to.equal(true);
    expect(validate('ranking', { ranking: ['A', 'B'], comment: '' })).to.equal(false);
    expect(validate('ranking', { ranking: ['B', 'D'] })).to.equal(false);
  });

  it('lets an analysis name the letters shown alone', () => {
    expect(validate('analysis', ANALYSIS)).to.equal(true);
    for (const change of [
      { unique_insights: [{ response: 'A', insight: 'x' }] },
      { partial_coverage: [{ responses: ['A'], point: 'x' }] },
      { contradictions: [{ topic: 'x', stances: [{ response: 'Response B', stance: 'x' }] }] },
      { blind_spots: undefined },
      { verdict: 'B' },
    ]) {
      expect(validate('analysis', { ...ANALYSIS, ...change }), JSON.stringify(change)).to.equal(false);
    }
  });

  it('asks for what the schemas of answers describe', () => {
    const ajv = new Ajv2020({ strict: false });
    expect(ajv.validate(written('analysis'), ANALYSIS)).to.equal(true);
    expect(ajv.validate(written('ranking-answer'), { ranking: ['D', 'B'], comment: '' })).to.equal(true);
    for (const [answer, name] of [
      ['ranking', 'ranking-answer'],
      ['analysis', 'analysis'],
      ['critique', 'critic-answer'],
    ] as const) {
      const asked = schemaOf(answer, ['B']) as { required: string[]; properties: object };
      const { required, properties } = written(name) as typeof asked;
      expect(asked.required).to.deep.equal(required);
      expect(Object.keys(asked.properties)).to.deep.equal(Object.keys(properties));
    }
  });

  it('requires every property and no other, as strict mode wants, without bounds that grammars ignore', () => {
    for (const answer of ['critique', 'ranking', 'analysis'] as const) {
      const schema = schemaOf(answer, ['A', 'B']);
      for (const each of objectsIn(schema)) {
        expect(each['additionalProperties']).to.equal(false);
        expect(each['required']).to.deep.equal(Object.keys(each['properties'] as object));
      }
      expect(JSON.stringify(schema)).not.to.match(/minimum|maximum|minItems|maxItems|uniqueItems|pattern/);
    }
  });
});
