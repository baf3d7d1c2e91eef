import { expect } from 'chai';
import type { Listening } from '../../src/system/async/broadcast.js';
import { Broadcast } from '../../src/system/async/broadcast.js';
import { Slices } from '../../src/system/async/slices.js';
import { seededRandom } from '../support/seeded-random.js';

const SEED = Number(process.env['SEED'] ?? 20260109);
const SCHEDULES = 300;

interface Item {
  readonly number: number;
}

describe(`A broadcast (SEED=${SEED})`, () => {
  let due: (() => void)[];
  /** Moves on by one with each item that is told. */
  let nowMs: number;
  beforeEach(() => ([due, nowMs] = [[], 0]));

  const slicesOf = (sliceMs: number): Slices =>
    new Slices({ soon: (callback) => void due.push(callback), monotonicMs: () => nowMs }, { sliceMs });
  /** The next turn of the event loop; false: there is nothing to do in it. */
  const turn = (): boolean => {
    const now = due.splice(0);
    for (const callback of now) callback();
    return now.length > 0;
  };
  const crowd = (broadcast: Broadcast<Item>, size: number): readonly number[][] =>
    Array.from({ length: size }, () => {
      const told: number[] = [];
      broadcast.listen(({ number }) => {
        told.push(number);
        nowMs += 1;
      });
      return told;
    });
  const toldIn = (listeners: readonly (readonly unknown[])[]): number =>
    listeners.reduce((sum, told) => sum + told.length, 0);

  it('tells few listeners at once', () => {
    const broadcast = new Broadcast<Item>(slicesOf(50));
    const listeners = crowd(broadcast, 50);
    broadcast.tell({ number: 1 });
    expect(listeners).to.deep.equal(Array.from({ length: 50 }, () => [1]));
    turn();
    broadcast.tell({ number: 2 });
    expect(listeners).to.deep.equal(Array.from({ length: 50 }, () => [1, 2]));
  });

  it('notifies many listeners in slices, in bounded time per turn, for any number of broadcasts', () => {
    const slices = slicesOf(50);
    const broadcasts = Array.from({ length: 3 }, () => new Broadcast<Item>(slices));
    const crowds = broadcasts.map((broadcast) => crowd(broadcast, 1_000));
    for (const broadcast of broadcasts) broadcast.tell({ number: 1 });
    expect(crowds.map(toldIn)).to.deep.equal([50, 0, 0]);
    for (let before = 50; before < 3_000; before = toldIn(crowds.flat())) {
      expect(turn()).to.equal(true);
      // A little more for what has waited.
      expect(toldIn(crowds.flat()) - before).to.be.within(1, 50 + before / 40 + 1);
    }
    turn();
    expect(turn()).to.equal(false);
    expect(new Set(crowds.flat().map(String))).to.deep.equal(new Set(['1']));
  });

  it('takes no longer for a turn where telling one of them takes long', () => {
    const broadcast = new Broadcast<Item>(slicesOf(50));
    let told = 0;
    for (let n = 0; n < 100; n += 1)
      broadcast.listen(() => {
        told += 1;
        nowMs += 20;
      });
    broadcast.tell({ number: 1 });
    for (let before = 0; told < 100; before = told, turn()) expect(told - before).to.be.within(3, 5);
  });

  it('delivers one item per turn or several at once, and says whether the next follows at once', () => {
    for (const [atOnce, expected] of [
      [1, ['1', '2', '3', '4']],
      [2, ['1', '2 and 3', '4']],
    ] as const) {
      const broadcast = new Broadcast<Item>(slicesOf(1), { atOnce });
      crowd(broadcast, 1);
      const told: string[] = [''];
      const goes: string[] = [];
      broadcast.listen(({ number }, hasMore) => {
        told.push(`${told.pop() ?? ''}${number}${hasMore ? ' and ' : ''}`);
        if (!hasMore) goes.push(...told.splice(0, 1, ''));
      });
      for (let number = 1; number <= 4; number += 1) broadcast.tell({ number });
      for (let count = 0, more = true; more; count = goes.length) {
        more = turn();
        expect(goes.length - count).to.be.at.most(1);
      }
      expect(goes).to.deep.equal(expected);
    }
  });

  it('tells few in the next turn while many others are being told', () => {
    const slices = slicesOf(50);
    const [loud, quiet] = [new Broadcast<Item>(slices), new Broadcast<Item>(slices)];
    crowd(loud, 110);
    const few = crowd(quiet, 3);
    loud.tell({ number: 1 });
    quiet.tell({ number: 1 });
    for (let turns = 0; turns < 2; turns += 1) turn();
    expect(few).to.deep.equal([[1], [1], [1]]);
  });

  it('delivers every item between subscribe and unsubscribe once and in order, whatever happens', () => {
    const random = seededRandom(SEED);
    for (let schedule = 0; schedule < SCHEDULES; schedule += 1) liveThrough(random);
  });

  /** Listeners come, go and catch up while items are told, also from within the telling. */
  function liveThrough(random: () => number): void {
    const pick = (bound: number): number => Math.floor(random() * bound);
    const broadcast = new Broadcast<Item>(slicesOf(1 + pick(4)), { atOnce: 1 + pick(3) });
    let last = 0;
    interface Watcher {
      readonly from: number;
      readonly told: number[];
      readonly listening: Listening;
      leftAt: number | null;
    }
    const watchers: Watcher[] = [];
    const act = (): void => {
      const watcher = watchers[pick(watchers.length + 1)];
      if (watcher === undefined) return come();
      if (random() < 0.3) leave(watcher);
      else if (random() < 0.5) watcher.listening.catchUp();
    };
    const leave = (watcher: Watcher): void => {
      watcher.leftAt ??= watcher.told.length;
      watcher.listening.leave();
    };
    const come = (): void => {
      const told: number[] = [];
      const isBusy = random() < 0.2;
      const listening = broadcast.listen(({ number }) => {
        told.push(number);
        nowMs += 1;
        if (isBusy) act();
      });
      watchers.push({ from: last, told, listening, leftAt: null });
    };
    for (let step = 0; step < 60; step += 1) {
      if (random() < 0.4) act();
      if (random() < 0.4) broadcast.tell({ number: (last += 1) });
      if (random() < 0.6) turn();
    }
    while (turn());
    for (const { from, told, leftAt } of watchers) {
      expect(told).to.have.length(leftAt ?? last - from);
      expect(told).to.deep.equal(told.map((_, index) => from + 1 + index));
    }
    expect(broadcast.size).to.equal(watchers.filter(({ leftAt }) => leftAt === null).length);
  }

  it('tells more in a turn the longer it waits', () => {
    const broadcast = new Broadcast<Item>(slicesOf(50));
    const listeners = crowd(broadcast, 1_000);
    broadcast.tell({ number: 1 });
    nowMs += 2_000;
    const before = toldIn(listeners);
    turn();
    expect(toldIn(listeners) - before).to.equal(50 + Math.ceil(2_050 / 40));
  });

  it('keeps no more than 64 items for those who wait: at the bound they are told at once', () => {
    const broadcast = new Broadcast<Item>(slicesOf(10));
    const listeners = crowd(broadcast, 100);
    for (let number = 1; number <= 500; number += 1) {
      broadcast.tell({ number });
      for (const told of listeners) expect(number - told.length).to.be.at.most(64);
    }
    while (turn());
    expect(toldIn(listeners)).to.equal(500 * 100);
  });

  it('ends with everybody told at once when the service stops, and then tells all at once', () => {
    const slices = slicesOf(50);
    const broadcast = new Broadcast<Item>(slices);
    const listeners = crowd(broadcast, 200);
    broadcast.tell({ number: 1 });
    const told: string[] = [];
    slices.postpone(() => told.push(`postponed until ${toldIn(listeners)} are told`));
    slices.stop();
    broadcast.tell({ number: 2 });
    expect(toldIn(listeners)).to.equal(400);
    expect(told).to.deep.equal(['postponed until 200 are told']);
  });

  it('lets what may wait wait until everybody has been told, and then takes its turns', () => {
    const slices = slicesOf(50);
    const broadcast = new Broadcast<Item>(slices);
    let closed = 0;
    let told = 0;
    for (let n = 0; n < 200; n += 1)
      broadcast.listen(() => {
        told += 1;
        nowMs += 1;
        slices.postpone(() => {
          closed += 1;
          nowMs += 1;
        });
      });
    broadcast.tell({ number: 1 });
    // As long as nobody waits.
    const closedAtOnce = closed;
    expect([told, closed]).to.deep.equal([25, 25]);
    for (; told < 200; turn()) expect(closed).to.equal(closedAtOnce);
    for (let before = closed; closed < 200; before = closed) {
      turn();
      expect(closed - before).to.be.within(1, 50);
    }
  });

  it('lets what may wait wait no longer than many slices, however much is told', () => {
    const slices = slicesOf(50);
    slices.start(() => true);
    let isClosed = false;
    slices.postpone(() => (isClosed = true));
    for (let turns = 0; turns < 200; turns += 1) turn();
    expect(isClosed).to.equal(false);
    turn();
    expect(isClosed).to.equal(true);
  });
});
