import { expect } from 'chai';
import type { RunEvent } from '../../src/run/events.js';
import { assertRunEvent } from '../../src/run/stream.js';
import { nodeSystem } from '../../src/system/system.js';
import { HeldTraces } from '../../src/telemetry/held-traces.js';
import { RunTrace } from '../../src/telemetry/spans.js';
import { eventIn, readGolden } from '../support/golden.js';

const { sha256 } = nodeSystem();
const RUN = '0b7e9d0e-2c7f-4b52-8a57-6a1f3d1c9e10';

describe('The traces that an instance holds', () => {
  const lines = readGolden().find(({ name }) => name === 'v2-fixed-graph')?.lines ?? [];
  const events = lines.map((line): RunEvent => {
    const event = eventIn(line);
    assertRunEvent(event);
    return event;
  });
  /** The events as appends of one event each, to a run of its own. */
  const append = (held: HeldTraces, event: RunEvent, runId = RUN): void =>
    held.onRunAppended({ before: event.seq === 0 ? null : {}, events: [event], after: { runId } });

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

  it('lack a run that 2,000 others have followed, so that paused runs take no memory', () => {
    const held = new HeldTraces(sha256);
    const [first] = events;
    if (first === undefined) throw new Error('The history is empty');
    append(held, first);
    for (let other = 0; other < 2_000; other += 1) append(held, first, `run ${other}`);
    for (const event of events.slice(1)) append(held, event);
    expect(held.take(RUN)).to.equal(null);
  });
});
