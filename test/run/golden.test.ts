import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { exportLine, readExport } from '../../src/audit/export.js';
import { verifyRecord } from '../../src/audit/verify.js';
import { schemaCheck } from '../support/schema-check.js';
import { chartCache } from '../../src/run/chart/machine.js';
import type { RunFactType } from '../../src/run/events.js';
import type { GoldenHistory } from '../support/golden.js';
import { answerOf, eventIn, readGolden } from '../support/golden.js';
import { goldenHistories } from '../support/golden-histories.js';

const { sha256 } = nodeSystem();

/** Whether the golden histories must hold an event of each type. */
const IS_GOLDEN: Readonly<Record<RunFactType, boolean>> = {
  RunRequested: true,
  RunClaimed: true,
  RunReleased: true,
  RunStarted: true,
  RunResumed: true,
  NodeStarted: true,
  CallReserved: true,
  ToolCalled: true,
  ChildStarted: true,
  ChildEnded: true,
  NodeCompleted: true,
  NodeFailed: true,
  QuorumReached: true,
  PanelClosed: true,
  RunPaused: true,
  VoteCast: true,
  PauseEscalated: true,
  GateDecided: true,
  RunCompleted: true,
  RunFailed: true,
};

describe('Golden histories', () => {
  const golden = readGolden();

  it('hold every event that they must and every end', () => {
    const events = golden.flatMap(({ lines }) => lines.map(eventIn));
    const required = Object.entries(IS_GOLDEN).flatMap(([type, isGolden]) => (isGolden ? [type] : []));
    expect(events.map(({ type }) => type)).to.include.members(required);
    const kinds = events.flatMap(({ type, data }) => (type === 'RunFailed' && 'kind' in data ? [data.kind] : []));
    expect(kinds).to.include.members(['cancelled', 'rejected', 'node_failed', 'no_route']);
    const actions = events.flatMap(({ data }) => ('action' in data ? [data.action] : []));
    expect(actions).to.include.members(['approve', 'modify', 'reject']);
  });

  it('are recorded the same every time', () => {
    const lines = (): unknown => [...goldenHistories()].map(([name, events]) => [name, events.map(exportLine)]);
    expect(lines()).to.deep.equal(lines());
  });

  for (const history of golden) {
    it(`fold to their recorded answers: ${history.name}`, async () => {
      const answers: string[] = [];
      for (let count = 1; count <= history.lines.length; count += 1) {
        const { firstDifference, run } = await verified(history, count);
        expect(firstDifference).to.equal(null);
        if (run !== null) answers.push(answerOf(run));
      }
      expect(answers).to.deep.equal(history.answers);
    });
  }

  it('of forks have a state that fits its schema', () => {
    const isRunFold = schemaCheck('run-fold.json');
    const states = golden
      .map(({ lines }) => eventIn(lines[0] ?? '').data)
      .map((data) => ('state' in data ? data.state : null));
    const forks = states.filter((state) => state !== null);
    expect(forks).to.have.length.at.least(2);
    for (const state of forks) expect(isRunFold(state), JSON.stringify(isRunFold.errors)).to.equal(true);
  });
});

function verified({ lines }: GoldenHistory, count: number): ReturnType<typeof verifyRecord> {
  const { data } = eventIn(lines[0] ?? '');
  const runId = 'runId' in data ? String(data.runId) : '';
  return verifyRecord(runId, readExport(runId, asyncOf(lines.slice(0, count))), { charts: chartCache(), sha256 });
}

async function* asyncOf<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}
