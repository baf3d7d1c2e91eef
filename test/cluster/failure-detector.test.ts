import { expect } from 'chai';
import { FailureDetector } from '../../src/cluster/failure-detector.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';

const BEAT_MS = 5_000;
const PREDECESSORS = ['first', 'before'];

describe('The failure detector', () => {
  let system: ManualSystem;
  let detector: FailureDetector;

  /** Delivers heartbeats of these instances at every interval for a time. */
  const receive = (forMs: number, ...instanceIds: readonly string[]): void => {
    for (let passedMs = 0; passedMs < forMs; passedMs += BEAT_MS) {
      system.advance(BEAT_MS);
      for (const each of instanceIds) detector.onHeartbeat(each);
    }
  };

  beforeEach(() => {
    system = manualSystem();
    const options = { heartbeatMs: BEAT_MS, suspectAfterMs: 30_000, predecessors: PREDECESSORS };
    detector = new FailureDetector({ ...options, instanceId: 'me', system });
  });

  it('suspects an instance only after it was silent for suspectAfterMs', () => {
    receive(10_000, 'me', 'other');
    receive(30_000, 'me');
    expect(detector.isSuspect('other')).to.equal(false);
    receive(BEAT_MS, 'me');
    expect(detector.isSuspect('other')).to.equal(true);
  });

  it('suspects no instance before it has received its own heartbeat', () => {
    detector.onHeartbeat('other');
    system.advance(1_000_000);
    expect(detector.isSuspect('other')).to.equal(false);
  });

  it('suspects no instance while it misses its own heartbeats', () => {
    receive(10_000, 'me', 'other');
    receive(30_000, 'me');
    system.advance(2 * BEAT_MS);
    expect(detector.isSuspect('other')).to.equal(true);
    system.advance(1);
    expect(detector.isSuspect('other')).to.equal(false);
  });

  it('gives every instance its full time once its own heartbeats return, as after a frozen process', () => {
    receive(10_000, 'me', 'other');
    system.advance(1_000_000);
    expect(detector.isSuspect('other')).to.equal(false);
    detector.onHeartbeat('me');
    expect(detector.isSuspect('other')).to.equal(false);
    receive(30_000, 'me');
    expect(detector.isSuspect('other')).to.equal(false);
    receive(BEAT_MS, 'me');
    expect(detector.isSuspect('other')).to.equal(true);
  });

  it('counts the silence of an unknown instance from the first question about it', () => {
    receive(10_000, 'me');
    expect(detector.isSuspect('stranger')).to.equal(false);
    receive(30_000, 'me');
    expect(detector.isSuspect('stranger')).to.equal(false);
    receive(BEAT_MS, 'me');
    expect(detector.isSuspect('stranger')).to.equal(true);
  });

  it('does not suspect an instance whose heartbeats return', () => {
    receive(10_000, 'me', 'other');
    receive(35_000, 'me');
    expect(detector.isSuspect('other')).to.equal(true);
    detector.onHeartbeat('other');
    expect(detector.isSuspect('other')).to.equal(false);
  });

  it('suspects the earlier instances of its data directory, even if it receives their heartbeats', () => {
    receive(10_000, 'me', ...PREDECESSORS);
    for (const dead of PREDECESSORS) expect(detector.isSuspect(dead)).to.equal(true);
    expect(detector.isInTurn('a run')).to.equal(true);
  });

  it('never suspects itself', () => {
    receive(10_000, 'me');
    system.advance(1_000_000);
    expect(detector.isSuspect('me')).to.equal(false);
  });

  it('shares the turns to take runs with the other instances that are alive', () => {
    const runIds = Array.from({ length: 100 }, (_, at) => `run ${at}`);
    receive(10_000, 'me', 'other');
    const own = runIds.filter((runId) => detector.isInTurn(runId));
    expect(own.length).to.be.within(20, 80);
    receive(35_000, 'me');
    expect(runIds.every((runId) => detector.isInTurn(runId))).to.equal(true);
  });

  it('forgets suspected instances that are not needed, and no others', () => {
    receive(10_000, 'me', 'other');
    receive(35_000, 'me');
    detector.forgetSuspects((instanceId) => instanceId === 'other');
    expect(detector.isSuspect('other')).to.equal(true);
    detector.forgetSuspects(() => false);
    // The silence of a forgotten instance counts from zero again.
    expect(detector.isSuspect('other')).to.equal(false);
  });

  it('keeps suspecting an instance that owns only webhooks, so that others claim them', () => {
    detector.remember((instanceId) => instanceId === 'other');
    receive(10_000, 'me', 'other');
    receive(35_000, 'me');
    detector.forgetSuspects(() => false);
    expect(detector.isSuspect('other')).to.equal(true);
  });
});
