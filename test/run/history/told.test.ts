import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { RunEvent } from '../../../src/run/events.js';
import { GOLDEN, readGolden, runEventsIn } from '../../support/golden.js';
import { toldOf } from '../../support/told.js';

describe('What readers of a record tell of a run', () => {
  const golden = readGolden().map(({ name, lines }) => ({ name, events: runEventsIn(lines) }));
  const byId = new Map(golden.map(({ events }) => [runIdOf(events), events]));

  for (const { name, events } of golden) {
    it(`is what they have told before: ${name}`, async () => {
      const expected = readFileSync(new URL(`${name}.told`, GOLDEN), 'utf8');
      expect((await toldOf(events, byId)).split('\n')).to.deep.equal(expected.split('\n'));
    });
  }
});

function runIdOf([first]: readonly RunEvent[]): string {
  return first?.type === 'RunRequested' ? first.data.runId : '';
}
