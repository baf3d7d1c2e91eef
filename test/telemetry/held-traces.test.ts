import { expect } from 'chai';
import type { RunEvent } from '../../src/run/events.js';
import { nodeSystem } from '../../src/system/system.js';
import { HeldTraces } from '../../src/telemetry/held-traces.js';
import { RunTrace } from '../../src/telemetry/spans.js';
import { readGolden, runEventsIn } from '../support/golden.js';

const { sha256 } = nodeSystem();
const RUN = '0b7e9d0e-2c7f-4b52-8a57-6a1f3d1c9e10';

describe('The traces that an instance holds', () => {
  const events = runEventsIn(readGolden().find(({ name }) => name === 'v1-fixed-graph')?.lines ?? []);
  /** The events as appends of one event each, to a run of its own. */
  const append = (held: HeldTraces, event: RunEvent, runId = RUN): void =>
    held.onRunAppended({ before: event.seq === 0 ? null : {}, events: [event], characters: 100, after: { runId } });

  it('are those of the record, once', () => {
    const held = new HeldTraces(sha256);
    for (const event of events) append(held, event);
    const read = new RunTrace(RUN, sha256);
    for (const event of events) read.add(event);
    expect(held.take(RUN)).to.deep.equal(read.spans()).and.to.have.length.above(3);
    expect(held.take(RUN)).to.equal(null);
  });

  it('lack a run of which another instance has appended a part', () => {
    for (const missing of events.slice(0, -1)) {
      const held = new HeldTraces(sha256);
      for (const event of events) if (event !== missing) append(held, event);
      expect(held.take(RUN), missing.type).to.equal(null);
    }
  });

  it('lack the oldest runs once all together are too large, so that paused runs take no memory', () => {
    const held = new HeldTraces(sha256, 400 * (events.length + 2));
    const [first, ...others] = events;
    if (first === undefined) throw new Error('The history is empty');
    for (const runId of ['paused', 'left alone', RUN]) append(held, first, runId);
    for (const event of others) append(held, event);
    for (const event of others) append(held, event, 'paused');
    expect(held.take('paused')).to.equal(null);
    expect(held.take(RUN)).to.have.length.above(3);
    // What is taken no longer counts.
    for (const event of others) append(held, event, 'left alone');
    expect(held.take('left alone')).to.have.length.above(3);
  });

  it('lack the oldest runs once many small events are too large, because each takes 300 bytes beside its data', () => {
    const [first] = events;
    if (first === undefined) throw new Error('The history is empty');
    const runs = 1_000;
    const held = new HeldTraces(sha256, 300 * runs);
    const paused = Array.from({ length: 2 * runs }, (_, index) => `${index}`);
    for (const runId of paused) held.onRunAppended({ before: null, events: [first], characters: 1, after: { runId } });
    expect(held.size).to.be.within(runs / 2, runs);
  });
});
