import { expect } from 'chai';
import { OrphanRecovery } from '../../src/cluster/orphan-recovery.js';
import type { RunState } from '../../src/run/state.js';
import type { Story } from '../support/given.js';
import { given, graphOf, RUN_ID } from '../support/given.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';

const line = graphOf('one -> two');

describe('A recovery', () => {
  let system: ManualSystem;
  let recovery: OrphanRecovery;
  let taken: string[];
  let left: string[];
  /** Revisions that the records of the taken runs must reach. */
  let revisions: (number | undefined)[];
  let held: Set<string>;
  let dead: Set<string>;
  let isInTurn: boolean;

  beforeEach(() => {
    system = manualSystem();
    isInTurn = true;
    [taken, left, held, dead, revisions] = [[], [], new Set(), new Set(), []];
    recovery = new OrphanRecovery({
      system,
      instanceId: 'me',
      failureDetector: { isSuspect: (instanceId) => dead.has(instanceId), isInTurn: () => isInTurn },
      registry: {
        holds: (runId) => held.has(runId),
        recover(orphans) {
          for (const { runId, seq } of orphans) {
            taken.push(runId);
            revisions.push(seq);
          }
        },
        dequeue: (runId) => void left.push(runId),
      },
    });
  });

  const running = (): RunState => given(line).run;
  const pending = (): RunState => given(line, { pending: true }).run;
  const released = (): RunState => given(line).when({ type: 'ReleaseRun' }).run;
  const paused = (): RunState => given(line, { godMode: true }).run;
  const cancelled = (): RunState => given(line).when({ type: 'CancelRun', actor: null }).run;
  /** Runs all timers that are due. */
  const settle = (): readonly string[] => {
    system.advance(500);
    return taken;
  };

  for (const [what, run] of [
    ['waits for an instance with room', pending],
    ['its owner has released', released],
  ] as const) {
    it(`takes a run that ${what}, within half a second`, () => {
      recovery.onRunFolded(run());
      expect(taken).to.deep.equal([]);
      expect(settle()).to.deep.equal([RUN_ID]);
    });
  }

  it('never takes a corrupt run again, however often it checks', () => {
    recovery.onRunFolded(running());
    dead.add('one');
    recovery.check();
    expect(settle()).to.deep.equal([RUN_ID]);
    recovery.unfollow(RUN_ID);
    expect(left).to.include(RUN_ID);
    for (let looks = 0; looks < 3; looks += 1) recovery.check();
    expect(settle()).to.deep.equal([RUN_ID]);
  });

  for (const [what, run] of [
    ['is run elsewhere', running],
    ['is paused', paused],
    ['has ended', cancelled],
  ] as const) {
    it(`leaves a run that ${what}`, () => {
      recovery.onRunFolded(run());
      recovery.check();
      expect(settle()).to.deep.equal([]);
      expect(left).to.include(RUN_ID);
    });
  }

  it('leaves a run to the instance in turn, and takes it if that instance does not', () => {
    isInTurn = false;
    recovery.onRunFolded(released());
    system.advance(249);
    expect(taken).to.deep.equal([]);
    system.advance(251);
    expect(taken).to.deep.equal([RUN_ID]);
  });

  it('takes a run once its owner is suspected', () => {
    recovery.onRunFolded(running());
    dead.add('one');
    recovery.check();
    recovery.check();
    expect(settle()).to.deep.equal([RUN_ID]);
  });

  it('takes no run of an owner that is no longer suspected at the end of the wait', () => {
    recovery.onRunFolded(running());
    dead.add('one');
    recovery.check();
    dead.clear();
    expect(settle()).to.deep.equal([]);
  });

  it('leaves a run that another has claimed during the wait', () => {
    const free = given(line).when({ type: 'ReleaseRun' });
    recovery.onRunFolded(free.run);
    recovery.onRunFolded(free.when({ type: 'ClaimRun', reason: 'handover' }, 'other').run);
    expect(settle()).to.deep.equal([]);
  });

  it('takes back its own run that it has abandoned, and not one that it holds', () => {
    const own = (story: Story): RunState => story.when({ type: 'ClaimRun', reason: 'handover' }, 'me').run;
    recovery.onRunFolded(own(given(line).when({ type: 'ReleaseRun' })));
    held.add(RUN_ID);
    recovery.check();
    expect(settle()).to.deep.equal([]);
    held.clear();
    recovery.check();
    expect(settle()).to.deep.equal([RUN_ID]);
  });

  it('follows runs from before the start, unless a newer event was delivered since', () => {
    recovery.onRunFolded(cancelled());
    recovery.addUnfinished([
      { runId: RUN_ID, owner: null },
      { runId: 'old', owner: null },
      { runId: 'dying', owner: 'other' },
    ]);
    expect(settle()).to.deep.equal(['old']);
    expect(recovery.isOwner('other')).to.equal(true);
    expect(recovery.isOwner('one')).to.equal(false);
  });

  for (const [what, later] of [
    ['it has ended', cancelled],
    ['it is paused', paused],
    ['another owns it', running],
  ] as const) {
    it(`does not take a run again after it learned that ${what}, although the feed delivers earlier events`, () => {
      recovery.onRunUpdated(later());
      recovery.onRunFolded(pending());
      recovery.check();
      expect(settle()).to.deep.equal([]);
      recovery.onRunFolded(later());
      recovery.check();
      expect(settle()).to.deep.equal([]);
    });
  }

  it('takes a run once the feed delivers its release', () => {
    recovery.onRunUpdated(running());
    recovery.onRunFolded(pending());
    recovery.onRunFolded(released());
    expect(settle()).to.deep.equal([RUN_ID]);
  });

  it('ignores a read of a run that is older than what the feed has delivered', () => {
    recovery.onRunFolded(running());
    recovery.onRunUpdated(pending());
    recovery.check();
    expect(settle()).to.deep.equal([]);
  });

  it('offers a run with the revision that its record must reach', () => {
    recovery.addUnfinished([{ runId: 'old', owner: null, seq: 3 }]);
    recovery.onRunFolded(released());
    settle();
    expect(revisions).to.have.members([3, released().head.seq]);
  });

  it('takes no run after it was stopped', () => {
    recovery.onRunFolded(released());
    recovery.stop();
    expect(settle()).to.deep.equal([]);
    expect(system.timers()).to.equal(0);
  });
});
