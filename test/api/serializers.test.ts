import { expect } from 'chai';
import type { Described, SchemaName } from '../../src/api/schemas.js';
import { documentRecord, listedDocument } from '../../src/api/serializers/documents.js';
import { keyRecord, newKey, session } from '../../src/api/serializers/keys.js';
import { foldedRun, godModeState, historyRecord, runResult, runStart } from '../../src/api/serializers/runs.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import { pauseViewOf } from '../../src/run/pauses/pause-view.js';
import type { RunState } from '../../src/run/state.js';
import type { Story } from '../support/given.js';
import { broke, given, graphOf, scored, wrote } from '../support/given.js';
import { schemaCheck } from '../support/schema-check.js';

const AT = '2026-01-01T00:00:00.000Z';
const FORK = graphOf('plan -> left, right');
const COUNCIL = graphOf('write -> judge?; judge? -rework-> write; judge? -approve-> polish');

/** Histories that end in every status of a run. */
const STORIES: Readonly<Record<string, () => Story>> = {
  'a pending run': () => given(COUNCIL, { pending: true }),
  'a running run': () => given(COUNCIL).whenAll(wrote('write'), scored('judge', 5)),
  'a completed run': () => given(graphOf('write')).when(wrote('write')),
  'a failed run': () => given(COUNCIL).when(broke('write')),
  'a paused run with branches': () => given(FORK, { godMode: true }).whenApproved().when(wrote('plan')),
};

function expectFits<N extends SchemaName>(schema: N, value: Described<N>): void {
  const validate = schemaCheck(schema);
  expect(validate(value), `${schema}: ${JSON.stringify(validate.errors)}`).to.equal(true);
}

describe('The serializers of runs', () => {
  for (const [what, story] of Object.entries(STORIES)) {
    it(`write ${what} in accordance with its schemas after each event`, () => {
      for (const run of statesOf(story())) {
        expectFits('run-start.json', runStart({ ...run.request, runId: run.runId }));
        expectFits('run-result.json', runResult(summaryOf(run)));
        expectFits('history-record.json', historyRecord(summaryOf(run)));
        expectFits('folded-run.json', foldedRun(run));
        const view = pauseViewOf(run);
        if (view !== null)
          expectFits('god-mode-state.json', godModeState(view, { mayDecide: true, needed: { tokens: 1, usd: null } }));
      }
    });
  }
});

describe('The costs of a run', () => {
  it('are shown without the noise of binary fractions', () => {
    const summary = summaryOf(given(graphOf('write')).when(wrote('write')).run);
    const { usage } = summary;
    if (usage === null) throw new Error('The run has no usage');
    const sum = 0.1 + 0.2;
    const budget = { usd: 1, tokens: null, spentUsd: sum, spentTokens: 2, onExceeded: 'pause' as const };
    const shown = runResult({ ...summary, usage: { ...usage, costUsd: sum }, budget });
    expect([sum, shown.usage?.cost_usd, shown.budget?.spent_usd]).to.deep.equal([0.30000000000000004, 0.3, 0.3]);
  });
});

describe('The serializers of keys and documents', () => {
  it('write a key in accordance with its schemas, and its text only when it is new', () => {
    const key = {
      name: 'ann',
      hash: 'h',
      scopes: new Set(['read' as const]),
      addedAt: AT,
      addedBy: null,
      expiresAt: null,
    };
    const known = { ...key, revoked: { at: AT, by: 'ben' }, lastUsed: '2026-01-02' };
    expectFits('new-key.json', newKey({ key: { ...known, revoked: null }, text: `council_${'x'.repeat(43)}` }));
    expectFits('key-list.json', [keyRecord(known)]);
    expect(keyRecord(known)).to.include({ revoked_at: AT, revoked_by: 'ben' }).and.not.have.property('key');
    const scopes = new Set(['read' as const]);
    expectFits('session.json', session({ actor: 'ann', scopes, expiresAt: null, session: null }));
  });

  it('write a document in accordance with its schema, and a corrupt one with an error', () => {
    const document = { id: 'd', filename: 'a.pdf', pages: 1, chunks: 2, ingestedAt: AT, seq: 3 };
    expectFits('document.json', documentRecord(document));
    const corrupt = listedDocument({ ...document, isCorrupt: true });
    expectFits('document.json', corrupt);
    expect(corrupt.error).to.equal('The record of this document is damaged');
  });
});

function statesOf({ events: [first, ...rest] }: Story): readonly RunState[] {
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  const states = [firstState(first)];
  for (const event of rest) states.push(evolve(states.at(-1) ?? firstState(first), event));
  return states;
}
