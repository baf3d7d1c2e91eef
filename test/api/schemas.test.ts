import { readdirSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { openSchemas, readRecord } from '../../src/api/schemas.js';

const FOLDER = new URL('../../../schemas/', import.meta.url);

describe('The schemas', () => {
  it('are each a schema of draft 2020-12', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const names = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
    expect(names).to.include('run-start.json');
    for (const name of names) {
      const schema = readRecord(new URL(name, FOLDER));
      expect(ajv.validateSchema(schema), `${name}: ${ajv.errorsText()}`).to.equal(true);
    }
  });

  it('are read and compiled once, whoever asks', () => {
    const name = 'history-list.json';
    expect(openSchemas().validator(name)).to.equal(openSchemas().validator(name));
  });
});
