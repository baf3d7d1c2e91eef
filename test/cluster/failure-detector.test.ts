import { expect } from 'chai';
import { FailureDetector } from '../../src/cluster/failure-detector.js';

const OPTIONS = { instanceId: 'me', heartbeatMs: 5_000, suspectAfterMs: 30_000, predecessors: ['first', 'before'] };

/** A member that has heard of itself and of another every beat up to a time. */
function listening(untilMs: number): FailureDetector {
  const membership = new FailureDetector(OPTIONS);
  for (let nowMs = 0; nowMs <= untilMs; nowMs += OPTIONS.heartbeatMs) {
    membership.heard('me', nowMs);
    membership.heard('other', nowMs);
  }
  return membership;
}

/** Hears only itself from one time to another; whether the other is suspected then. */
function alone(membership: FailureDetector, fromMs: number, toMs: number): boolean {
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += OPTIONS.heartbeatMs) membership.heard('me', nowMs);
  return membership.isSuspect('other', toMs);
}

describe('Membership', () => {
  it('suspects an instance after its silence, not before', () => {
    expect(alone(listening(10_000), 15_000, 40_000)).to.equal(false);
    expect(alone(listening(10_000), 15_000, 45_000)).to.equal(true);
  });

  it('suspects nobody before it has heard of itself', () => {
    const membership = new FailureDetector(OPTIONS);
    membership.heard('other', 0);
    expect(membership.isSuspect('other', 1_000_000)).to.equal(false);
    expect(membership.hearsItself(0)).to.equal(false);
  });

  it('suspects nobody while it does not hear itself', () => {
    const membership = listening(10_000);
    expect([20_000, 20_001].map((nowMs) => membership.hearsItself(nowMs))).to.deep.equal([true, false]);
    expect(membership.isSuspect('other', 1_000_000)).to.equal(false);
  });

  it('gives everyone their full time once it hears itself again, as after a process stop', () => {
    const membership = listening(10_000);
    expect(membership.isSuspect('other', 1_000_000)).to.equal(false);
    membership.heard('me', 1_000_000);
    expect(membership.isSuspect('other', 1_000_000)).to.equal(false);
    expect(alone(membership, 1_005_000, 1_030_000)).to.equal(false);
    expect(alone(membership, 1_035_000, 1_035_000)).to.equal(true);
  });

  it('gives an instance that it never heard of its time from the first question on', () => {
    const membership = listening(10_000);
    expect(membership.isSuspect('stranger', 10_000)).to.equal(false);
    for (let nowMs = 15_000; nowMs <= 45_000; nowMs += 5_000) membership.heard('me', nowMs);
    expect(membership.isSuspect('stranger', 40_000)).to.equal(false);
    expect(membership.isSuspect('stranger', 45_000)).to.equal(true);
  });

  it('does not suspect one that beats again', () => {
    const membership = listening(10_000);
    expect(alone(membership, 15_000, 45_000)).to.equal(true);
    membership.heard('other', 46_000);
    expect(membership.isSuspect('other', 46_000)).to.equal(false);
  });

  it('knows that all before it in its place are dead, whatever it hears', () => {
    const membership = new FailureDetector(OPTIONS);
    for (const dead of OPTIONS.predecessors) {
      membership.heard(dead, 0);
      expect(membership.isSuspect(dead, 0)).to.equal(true);
    }
    expect(membership.others(0)).to.deep.equal([]);
  });

  it('never suspects itself', () => {
    const membership = listening(10_000);
    expect(membership.isSuspect('me', 1_000_000)).to.equal(false);
  });

  it('forgets the dead that nobody needs, and no others', () => {
    const membership = listening(10_000);
    alone(membership, 15_000, 45_000);
    membership.forget((instanceId) => instanceId === 'other', 45_000);
    expect(membership.isSuspect('other', 45_000)).to.equal(true);
    membership.forget(() => false, 45_000);
    // Forgotten: it has its time anew.
    expect(membership.isSuspect('other', 45_000)).to.equal(false);
  });
});
