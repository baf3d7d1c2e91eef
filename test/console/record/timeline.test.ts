import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import type { Timeline } from '../../../src/console/record/timeline.js';
import { positionOf, timelineAt, timeSpent } from '../../../src/console/record/timeline.js';
import { history, longHistory, recordOf } from '../../support/console-records.js';
import { goldenHistories } from '../../support/golden-histories.js';
import { named, randomStory } from '../../support/random-history.js';

describe('The timeline of a run', () => {
  it('draws work to scale', () => {
    const { zones, lanes } = lineOf(history('fixed-graph'));
    expect(zones.map(({ kind, isBreak, label }) => [kind, isBreak, label])).to.deep.equal([['work', false, '5.0 s']]);
    expect(
      lanes.map(({ label, segments }) => [label, segments.map(({ x0, x1 }) => `${x0.toFixed(2)}-${x1.toFixed(2)}`)]),
    ).to.deep.equal([
      ['Master', ['0.00-0.20', '0.40-0.60']],
      ['Critic', ['0.20-0.40', '0.60-0.80']],
      ['Writer', ['0.80-1.00']],
    ]);
  });

  it('shows a wait for a decision as a break with its duration', () => {
    const { zones, lanes } = lineOf(history('god-approve'));
    const human = zones.filter(({ kind }) => kind === 'human');
    expect(human.map(({ isBreak, label }) => [isBreak, label])).to.deep.equal([
      [true, '1 min'],
      [true, '1 min'],
      [true, '1 min'],
    ]);
    for (const { x0, x1 } of human) expect(x1 - x0).to.be.closeTo(0.05, 1e-9);
    expect(lanes[0]?.segments.map(({ result }) => result)).to.deep.equal(['approve', 'approve', 'approve']);
  });

  it('separates back-offs, work and a lost owner', () => {
    const retried = timed(history('failure-after-retries'), 10_000);
    expect(lineOf(retried).lanes[0]?.segments.map(({ kind, result }) => [kind, result])).to.deep.equal([
      ['work', 'failed'],
      ['back-off', null],
      ['work', 'failed'],
      ['back-off', null],
      ['work', 'failed'],
    ]);
    const kinds = lineOf(history('takeover')).zones.map(({ kind }) => kind);
    expect(kinds).to.include('room');
    expect(kinds).to.include('no-owner');
  });

  it('extends open periods to now, but not after the end of the run', () => {
    const events = history('fixed-graph');
    const started = events.findIndex(({ type }) => type === 'NodeStarted');
    const record = recordOf(events.slice(0, started + 1));
    const at = (ms: number) => {
      return timelineAt(record, started, new Date(Date.parse(events[started]?.at ?? '') + ms).toISOString());
    };
    const open = at(5_000)?.lanes[0]?.segments[0];
    expect([open?.x0, open?.x1, open?.isOpen, open?.label]).to.deep.equal([0, 1, true, '5.0 s']);
    expect(at(9_000)?.lanes[0]?.segments[0]?.label).to.equal('9.0 s');
    const ended = timelineAt(recordOf(events), events.length - 1, '2999-01-01T00:00:00.000Z');
    expect(timeSpent(ended ?? lineOf(events)).totalMs).to.equal(5_000);
  });

  it('has every event and segment at its place, in any history', () => {
    for (const [name, events] of goldenHistories()) expectInPlace(events, name);
    for (let seed = 1; seed <= 12; seed += 1) {
      named(seed, () => expectInPlace(timed(randomStory(seed).events, 700), `seed ${seed}`));
    }
    expectInPlace(timed(longHistory(1_000), 1_500), 'long');
  });

  it('accepts events of instances with different clocks', () => {
    const events = history('takeover').map((event) =>
      event.seq % 3 === 0 ? { ...event, at: new Date(Date.parse(event.at) - 60_000).toISOString() } : event,
    );
    expectInPlace(events, 'backwards');
  });

  it('is a point while no time has passed', () => {
    const [first] = history('cancel');
    if (first === undefined) throw new Error('empty');
    const line = lineOf([first]);
    expect([line.zones, line.events.map(({ x }) => x)]).to.deep.equal([[], [0]]);
    expect(timelineAt(recordOf([first]), -1, first.at)).to.equal(null);
  });
});

/** The same events with the given number of milliseconds between them. */
function timed(events: readonly RunEvent[], everyMs: number): readonly RunEvent[] {
  return events.map((event) => ({ ...event, at: new Date(Date.UTC(2026, 0, 1) + event.seq * everyMs).toISOString() }));
}

function lineOf(events: readonly RunEvent[]): Timeline {
  const line = timelineAt(recordOf(events), events.length - 1, events.at(-1)?.at ?? '');
  if (line === null) throw new Error('nothing has happened');
  return line;
}

function expectInPlace(events: readonly RunEvent[], name: string): void {
  const { zones, lanes, events: marks, fromMs, toMs } = lineOf(events);
  let [x, ms] = [0, fromMs];
  for (const zone of zones) {
    expect([zone.x0, zone.fromMs], name).to.deep.equal([x, ms]);
    expect(zone.x1 > zone.x0 && zone.toMs > zone.fromMs, name).to.equal(true);
    [x, ms] = [zone.x1, zone.toMs];
  }
  if (zones.length > 0) expect([x, ms], name).to.deep.equal([1, toMs]);
  const places = marks.map((each) => each.x);
  expect(places, name).to.deep.equal(places.toSorted((a, b) => a - b));
  for (const { x0, x1 } of lanes.flatMap((lane) => lane.segments)) {
    expect(x0 >= 0 && x1 <= 1 && x1 >= x0, `${name}: ${x0} to ${x1}`).to.equal(true);
  }
  expect([positionOf(zones, fromMs - 1), positionOf(zones, toMs + 1)], name).to.deep.equal(
    zones.length > 0 ? [0, 1] : [0, 0],
  );
}
