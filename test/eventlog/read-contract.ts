/** The contract of reads, identity and head for every event log. */
import { expect } from 'chai';
import { LogClosed } from '../../src/eventlog/errors.js';
import { rejectionOf } from '../support/rejection.js';
import type { CurrentLog, OpenLog } from './contract-bench.js';
import { all, freshCategory, freshStream, idsOf, newEvent, numbered } from './contract-bench.js';

/** Reads of one stream. */
export function readStreamContract(current: CurrentLog): void {
  describe('readStream', () => {
    it('returns no events for a missing stream', async () => {
      const { log } = current();
      expect(await all(log.readStream(freshStream(current())))).to.deep.equal([]);
      expect(await all(log.readStream(freshStream(current()), { direction: 'backwards' }))).to.deep.equal([]);
    });

    it('reads ranges in both directions', async () => {
      const { log } = current();
      const stream = freshStream(current());
      await log.append(stream, numbered(5), 'none');
      const revisions = async (range: Parameters<typeof log.readStream>[1]): Promise<readonly number[]> =>
        (await all(log.readStream(stream, range))).map(({ revision }) => revision);
      expect(await revisions({})).to.deep.equal([0, 1, 2, 3, 4]);
      expect(await revisions({ from: 0 })).to.deep.equal([0, 1, 2, 3, 4]);
      expect(await revisions({ from: 2 })).to.deep.equal([2, 3, 4]);
      expect(await revisions({ from: 2, max: 2 })).to.deep.equal([2, 3]);
      expect(await revisions({ from: 5 })).to.deep.equal([]);
      expect(await revisions({ max: 0 })).to.deep.equal([]);
      expect(await revisions({ direction: 'backwards' })).to.deep.equal([4, 3, 2, 1, 0]);
      expect(await revisions({ direction: 'backwards', max: 1 })).to.deep.equal([4]);
      expect(await revisions({ direction: 'backwards', from: 0 })).to.deep.equal([0]);
      expect(await revisions({ direction: 'backwards', from: 2 })).to.deep.equal([2, 1, 0]);
      expect(await revisions({ direction: 'backwards', from: 9, max: 2 })).to.deep.equal([4, 3]);
    });

    it('returns every event with its stream, revision and position', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const events = numbered(3);
      await log.append(stream, events, 'none');
      const recorded = await all(log.readStream(stream));
      expect(
        recorded.map(({ position, recordedAtMs = Date.now(), ...rest }) => [
          typeof position,
          Math.abs(Date.now() - recordedAtMs) < 60_000,
          rest,
        ]),
      ).to.deep.equal(events.map((event, revision) => ['string', true, { ...event, stream, revision }]));
      const positions = recorded.map(({ position }) => position);
      expect([...positions].sort()).to.deep.equal(positions);
    });

    it('reads streams and events of any size', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const large = { text: 'x'.repeat(300_000) };
      let last = -1;
      for (const events of [numbered(700), [newEvent(large)], [newEvent(large)], numbered(700)]) {
        last = (await log.append(stream, events, last < 0 ? 'none' : last)).revision;
      }
      const forwards = await all(log.readStream(stream));
      expect(forwards.map(({ revision }) => revision)).to.deep.equal(Array.from({ length: 1402 }, (_, n) => n));
      const backwards = await all(log.readStream(stream, { direction: 'backwards' }));
      expect(idsOf(backwards)).to.deep.equal([...idsOf(forwards)].reverse());
      expect(await all(log.readStream(stream, { from: 1, max: 1_301 }))).to.have.length(1_301);
    });

    it('returns the same events for any limit of characters in memory', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const large = newEvent({ text: 'x'.repeat(3_000) });
      await log.append(stream, [...numbered(20), large, ...numbered(20)], 'none');
      const forwards = await all(log.readStream(stream));
      for (const pageChars of [1, 500, 5_000]) {
        expect(await all(log.readStream(stream, { pageChars }))).to.deep.equal(forwards);
        const backwards = await all(log.readStream(stream, { pageChars, direction: 'backwards' }));
        expect(backwards).to.deep.equal([...forwards].reverse());
        const some = await all(log.readStream(stream, { pageChars, from: 3, max: 25 }));
        expect(some).to.deep.equal(forwards.slice(3, 28));
      }
    });
  });
}

/** Reads of all streams, and the log's own properties. */
export function readAllContract(current: CurrentLog): void {
  describe('readAll', () => {
    it('returns events of all streams in the order of their appends', async () => {
      const { log } = current();
      const [a, b] = [freshStream(current()), freshStream(current())];
      const before = await log.head();
      const events = numbered(4);
      for (const [index, event] of events.entries()) {
        await log.append(index % 2 === 0 ? a : b, [event], index < 2 ? 'none' : 0);
      }
      const read = (await all(log.readAll(before))).filter(({ stream }) => stream === a || stream === b);
      expect(idsOf(read)).to.deep.equal(idsOf(events));
      expect(read.map(({ revision }) => revision)).to.deep.equal([0, 0, 1, 1]);
      const positions = read.map(({ position }) => position);
      expect(new Set(positions).size).to.equal(4);
      expect([...positions].sort()).to.deep.equal(positions);
    });

    it('returns only events of the wanted categories', async () => {
      const { log } = current();
      const [wanted, also, other] = [freshCategory(current()), freshCategory(current()), freshCategory(current())];
      const before = await log.head();
      for (const stream of [`${wanted}-1`, `${wanted}x-1`, `${other}-${wanted}-1`, `${also}-1-2`, wanted]) {
        await log.append(stream, numbered(1), 'none');
      }
      const streams = async (categories: readonly string[]): Promise<readonly string[]> =>
        (await all(log.readAll(before, { categories }))).map(({ stream }) => stream);
      expect(await streams([wanted])).to.deep.equal([`${wanted}-1`, wanted]);
      expect(await streams([also, wanted])).to.deep.equal([`${wanted}-1`, `${also}-1-2`, wanted]);
      expect(await streams([])).to.deep.equal([]);
    });

    it('starts after a position, exclusive, and stops after max events', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      await log.append(`${category}-1`, numbered(5), 'none');
      const found = await all(log.readAll(before, { categories: [category] }));
      const [, second] = found;
      const later = await all(log.readAll(second?.position ?? null, { categories: [category], max: 2 }));
      expect(idsOf(later)).to.deep.equal(idsOf(found.slice(2, 4)));
      expect(await all(log.readAll(await log.head(), { categories: [category] }))).to.deep.equal([]);
    });

    it('reads past many events of other categories', async () => {
      const { log } = current();
      const [wanted, other] = [freshCategory(current()), freshCategory(current())];
      const before = await log.head();
      await log.append(`${wanted}-1`, numbered(1), 'none');
      for (let n = 0; n < 10; n += 1) await log.append(`${other}-${n}`, numbered(900), 'none');
      await log.append(`${wanted}-2`, numbered(1), 'none');
      const streams = (await all(log.readAll(before, { categories: [wanted] }))).map(({ stream }) => stream);
      expect(streams).to.deep.equal([`${wanted}-1`, `${wanted}-2`]);
    });

    it('returns each event once during concurrent appends', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const writing = Promise.all(
        Array.from({ length: 50 }, (_, n) => log.append(`${category}-${n}`, numbered(20), 'none')),
      );
      const early = await all(log.readAll(before, { categories: [category] }));
      await writing;
      const late = await all(log.readAll(early.at(-1)?.position ?? before, { categories: [category] }));
      expect(new Set(idsOf([...early, ...late])).size).to.equal(1_000);
      expect(early.length + late.length).to.equal(1_000);
    });
  });

  describe('head, identity, gaps, ping', () => {
    it('has its head at the last append or later', async () => {
      const { log } = current();
      const { position } = await log.append(freshStream(current()), numbered(2), 'none');
      const head = await log.head();
      expect(head !== null && head >= position).to.equal(true);
    });

    it('keeps its identity', async () => {
      const { log } = current();
      const identity = await log.identity();
      expect(identity).to.be.a('string').that.is.not.empty;
      expect(await log.identity()).to.equal(identity);
    });

    it('has no gaps if nothing was deleted', async () => {
      const { log } = current();
      await log.append(freshStream(current()), numbered(2), 'none');
      expect(await log.hasGaps()).to.equal(false);
    });

    it('answers a ping', async () => {
      await current().log.ping();
    });
  });
}

/** The contract of a closed log. */
export function closeContract(open: OpenLog): void {
  describe('close', () => {
    it('lets appends in flight finish, then refuses every call', async () => {
      const opened = await open();
      const { log } = opened;
      const stream = freshStream(opened);
      const underWay = [log.append(stream, numbered(1), 'none'), log.append(freshStream(opened), numbered(3), 'none')];
      await log.close();
      expect((await Promise.all(underWay)).map(({ revision }) => revision)).to.deep.equal([0, 2]);
      const calls = [
        () => log.append(stream, numbered(1), 0),
        () => all(log.readStream(stream)),
        () => all(log.readAll(null)),
        () => log.head(),
        () => log.identity(),
        () => log.hasGaps(),
        () => log.ping(),
      ];
      for (const call of calls) expect(await rejectionOf(call())).to.be.instanceOf(LogClosed);
      await opened.close();
    });

    it('may be called twice', async () => {
      const opened = await open();
      await Promise.all([opened.log.close(), opened.log.close()]);
      await opened.log.close();
      await opened.close();
    });
  });
}
