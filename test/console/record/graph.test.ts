import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import { runChart } from '../../../src/audit/chart.js';
import type { GraphView } from '../../../src/console/record/graph.js';
import { traceAt } from '../../../src/console/record/executions.js';
import { graphViewAt } from '../../../src/console/record/graph.js';
import type { ChartConfig } from '../../../src/generated/schemas.js';
import { history, recordOf } from '../../support/console-records.js';
import { goldenHistories } from '../../support/golden-histories.js';

describe('The graph of a run at an event', () => {
  it('counts the executions of nodes and the uses of edges', () => {
    const { nodes, edges } = viewOf(history('fixed-graph'));
    expect(nodes.map(({ id, state, doneTimes }) => [id, state, doneTimes])).to.deep.equal([
      ['master_agent', 'done', 2],
      ['critic_agent', 'done', 2],
      ['writer_agent', 'done', 1],
    ]);
    expect(
      edges.map(({ source, target, takenTimes, isBack }) => `${source} ${target} ${takenTimes} ${isBack}`),
    ).to.have.members([
      'master_agent critic_agent 2 false',
      'critic_agent master_agent 1 true',
      'critic_agent writer_agent 1 false',
    ]);
  });

  it('marks the active node and the edge to it', () => {
    const events = history('fixed-graph');
    const critic = events.findIndex(({ type, data }) => type === 'NodeStarted' && data.node === 'critic_agent');
    const { nodes, edges } = viewOf(events.slice(0, critic + 1));
    expect(nodes.map(({ state }) => state)).to.deep.equal(['done', 'active', 'idle']);
    expect(edges.filter(({ isLastTaken }) => isLastTaken).map(({ target }) => target)).to.deep.equal(['critic_agent']);
  });

  it('marks the node that waits for a decision', () => {
    const events = history('god-approve');
    const paused = events.findLastIndex(({ type }) => type === 'RunPaused');
    const { nodes } = viewOf(events.slice(0, paused + 1));
    expect(nodes.map(({ state }) => state)).to.deep.equal(['done', 'done', 'next']);
  });

  it('marks where a run failed', () => {
    for (const name of ['failure-after-retries', 'failure-without-route']) {
      const failed = viewOf(history(name)).nodes.filter(({ state }) => state === 'failed');
      expect(failed, name).to.have.lengthOf(1);
    }
    expect(viewOf(history('failure-after-retries')).nodes[0]?.failedTimes).to.equal(3);
  });

  it('does not count a route that an override replaced', () => {
    const { edges } = viewOf(history('god-modify'));
    const byCondition = (condition: string) => edges.find((edge) => edge.condition === condition)?.takenTimes;
    expect([byCondition('rework'), byCondition('approve')]).to.deep.equal([0, 1]);
  });

  it('marks the same active nodes as the service’s chart of the run, after every event', () => {
    for (const [name, events] of goldenHistories()) {
      const record = recordOf(events);
      for (const { seq, at } of events) {
        const state = record.stateAt(seq);
        if (state === null) throw new Error('nothing has happened');
        const active = activeIn(runChart(state).states);
        const shown = graphViewAt(record, seq, traceAt(record, seq, at))?.nodes ?? [];
        const underWay = shown.filter(({ state }) => state === 'active' || state === 'waiting');
        expect(
          underWay.map(({ id }) => id),
          `${name} at ${seq}`,
        ).to.include.members(active);
        if (active.length > 0) expect(underWay, `${name} at ${seq}`).to.have.lengthOf(active.length);
      }
    }
  });
});

/** The nodes that a chart marks as active. */
function activeIn(states: ChartConfig['states']): readonly string[] {
  return Object.values(states).flatMap(({ meta, tags = [], states: inner = {} }) => [
    ...(meta !== undefined && tags.includes('active') ? [meta.node] : []),
    ...activeIn(inner),
  ]);
}

function viewOf(events: readonly RunEvent[]): GraphView {
  const record = recordOf(events);
  const view = graphViewAt(record, record.head, traceAt(record, record.head, events.at(-1)?.at ?? ''));
  if (view === null) throw new Error('nothing has happened');
  return view;
}
