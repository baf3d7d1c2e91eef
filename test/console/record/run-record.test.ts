import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import type { RunSnapshot } from '../../../src/console/record/run-record.js';
import { RunRecord } from '../../../src/console/record/run-record.js';
import { foldedRun } from '../../../src/api/serializers/runs.js';
import type { FoldedRun } from '../../../src/generated/schemas.js';
import { pauseViewOf } from '../../../src/run/pauses/pause-view.js';
import { evolve, firstState } from '../../../src/run/evolve.js';
import type { RunState } from '../../../src/run/state.js';
import { goldenHistories } from '../../support/golden-histories.js';
import { named, randomStory } from '../../support/random-history.js';
import { goldenRecords, recordOf } from '../../support/console-records.js';

describe('The record of a run in the console', () => {
  it('has the same state as the service after every event of every golden history', () => {
    for (const [name, events] of [...goldenHistories(), ...goldenRecords()]) expectSameAsService(events, name);
  });

  it('has the same state as the service after every event of random histories', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      named(seed, () => expectSameAsService(randomStory(seed).events, `seed ${seed}`));
    }
  });

  it('shows the same branches, deadline and votes of a pause as God Mode', () => {
    for (const [name, events] of goldenHistories()) {
      const record = recordOf(events);
      for (const { seq } of events) {
        const state = stateAfter(events, seq);
        const view = pauseViewOf(state);
        const moment = record.snapshotAt(seq);
        if (view === null) continue;
        if (view.pause !== null) expect(moment?.pause?.approvals, `${name} at ${seq}`).to.deep.equal(view.approvals);
        expect(moment?.branches, `${name} at ${seq}`).to.deep.equal(view.branches);
      }
    }
  });

  it('ignores known events and rejects a gap', () => {
    const [first, second, third] = goldenHistories().get('blueprint') ?? [];
    if (first === undefined || second === undefined || third === undefined) throw new Error('too short');
    const record = recordOf([first, second]);
    expect(record.add(first)).to.equal(false);
    expect(record.head).to.equal(1);
    expect(() => new RunRecord().add(third)).to.throw(RangeError);
  });

  it('keeps events that cannot be folded, and names the first', () => {
    const [first, second, ...rest] = goldenHistories().get('blueprint') ?? [];
    if (first === undefined || second === undefined) throw new Error('too short');
    const later = JSON.parse(JSON.stringify({ ...second, type: 'RunDreamt' })) as RunEvent;
    const record = recordOf([first, later, ...rest]);
    expect(record.fault?.seq).to.equal(1);
    expect(record.events).to.have.lengthOf(2 + rest.length);
    expect(record.snapshotAt(5)?.seq).to.equal(0);
  });
});

function expectSameAsService(events: readonly RunEvent[], name: string): void {
  const record = recordOf(events);
  expect(record.fault, name).to.equal(null);
  // Reads forward and backward, so that cached states would show a fault.
  for (const { seq } of [...events, ...events.toReversed()]) {
    const moment = record.snapshotAt(seq);
    const state = record.stateAt(seq);
    if (moment === null || state === null) throw new Error(`${name} shows nothing at ${seq}`);
    expect(answerOf(state.runId, moment), `${name} at ${seq}`).to.deep.equal(foldedRun(stateAfter(events, seq)));
  }
}

/** Computes a state as the service does, from the first event. */
const folds = new WeakMap<readonly RunEvent[], RunState[]>();

function stateAfter(events: readonly RunEvent[], seq: number): RunState {
  const states = folds.get(events) ?? [];
  folds.set(events, states);
  for (const event of events.slice(states.length, seq + 1)) {
    const last = states.at(-1);
    if (last !== undefined) states.push(evolve(last, event));
    else if (event.type === 'RunRequested') states.push(firstState(event));
  }
  const state = states[seq];
  if (state === undefined) throw new Error(`no state at ${seq}`);
  return state;
}

function answerOf(runId: string, moment: RunSnapshot): FoldedRun {
  return {
    run_id: runId,
    seq: moment.seq,
    status: moment.status,
    active_node: moment.activeNode,
    input_topic: moment.topic,
    material: null,
    current_draft: moment.draft,
    final_draft: moment.finalDraft,
    final_output: null,
    critic_score: moment.score,
    iteration_count: moment.iteration,
    feedback_history: [...moment.feedback],
    route_decision: moment.route,
    error: moment.error,
    paused: moment.pause !== null,
    next_nodes: [...moment.nextNodes],
  };
}
