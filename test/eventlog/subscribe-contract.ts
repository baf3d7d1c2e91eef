/** What every event log must promise about subscriptions. */
import { expect } from 'chai';
import { SubscriptionDropped } from '../../src/eventlog/errors.js';
import type { Followed, NewEvent } from '../../src/eventlog/port.js';
import { rejectionOf } from '../support/rejection.js';
import type { CurrentLog, OpenLog } from './contract-bench.js';
import { all, eventsIn, freshCategory, idsOf, newEvent, numbered, until } from './contract-bench.js';
import { following } from './open-subscription.js';

const NEVER = new AbortController().signal;
/** Appends of two events by each of forty writers, one after the other. */
const EACH = process.env['SOAK'] === undefined ? 10 : 25;

/** History, then what is appended, in one order. */
export function subscribeContract(current: CurrentLog, open: OpenLog): void {
  describe('subscribe', () => {
    it('gives history, says so once, and goes on with what is appended', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const past = numbered(3);
      await log.append(`${category}-1`, past, 'none');
      const { collected, waitFor, stop } = following(log, before, [category]);
      await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
      const live = numbered(3);
      for (const [index, event] of live.entries()) await log.append(`${category}-1`, [event], 2 + index);
      await waitFor((seen) => eventsIn(seen).length >= 6);
      await stop();
      expect(idsOf(eventsIn(collected))).to.deep.equal(idsOf([...past, ...live]));
      const kinds = collected.map(({ kind }) => kind).filter((kind) => kind !== 'checkpoint');
      expect(kinds).to.deep.equal(['event', 'event', 'event', 'caughtUp', 'event', 'event', 'event']);
    });

    it('gives the same events as reading does', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      await log.append(`${category}-1`, numbered(2), 'none');
      const { collected, waitFor, stop } = following(log, before, [category]);
      await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
      await log.append(`${category}-1`, [newEvent({ text: 'é 漢字 🜁' })], 1);
      await waitFor((seen) => eventsIn(seen).length >= 3);
      await stop();
      const parsed = (events: ReturnType<typeof eventsIn>): unknown =>
        events.map(({ data, ...rest }) => ({ ...rest, data: JSON.parse(data) as unknown }));
      expect(parsed(eventsIn(collected))).to.deep.equal(
        parsed(await all(log.readAll(before, { categories: [category] }))),
      );
    });

    it('starts after a position, exclusive', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      await log.append(`${category}-1`, numbered(4), 'none');
      const stored = await all(log.readAll(before, { categories: [category] }));
      const seen = await until(
        log.subscribe(stored[1]?.position ?? null, { categories: [category], signal: NEVER }),
        (followed) => eventsIn(followed).length === 2,
      );
      expect(idsOf(eventsIn(seen))).to.deep.equal(idsOf(stored.slice(2)));
    });

    it('joins history and live without gap or disorder while many append', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const writers = Array.from({ length: 40 }, async (_, writer) => {
        for (let n = 0; n < EACH; n += 1)
          await log.append(`${category}-${writer}`, numbered(2), n === 0 ? 'none' : n * 2 - 1);
      });
      const subscriber = following(log, before, [category]);
      const late = (async () => {
        await writers[0];
        return following(log, before, [category]);
      })();
      await Promise.all(writers);
      const stored = idsOf(await all(log.readAll(before, { categories: [category] })));
      for (const { collected, waitFor, stop } of [subscriber, await late]) {
        await waitFor((seen) => eventsIn(seen).length >= 40 * EACH * 2);
        await stop();
        expect(idsOf(eventsIn(collected))).to.deep.equal(stored);
      }
    });

    it('waits for a slow consumer and loses nothing', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const writing = Promise.all(
        Array.from({ length: 20 }, (_, n) => log.append(`${category}-${n}`, numbered(20), 'none')),
      );
      const ids: string[] = [];
      for await (const followed of log.subscribe(before, { categories: [category], signal: NEVER })) {
        await new Promise((resolve) => setImmediate(resolve));
        if (followed.kind === 'event') ids.push(followed.event.id);
        if (ids.length === 400) break;
      }
      await writing;
      expect(ids).to.deep.equal(idsOf(await all(log.readAll(before, { categories: [category] }))));
    });

    it('gives only the events of the wanted types, from history and from later appends', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const typed = (types: string): readonly NewEvent[] => [...types].map((type) => newEvent({}, type));
      await log.append(`${category}-1`, typed('ABCA'), 'none');
      const some = following(log, before, [category], ['A', 'C']);
      const one = following(log, before, [category], ['AB', 'D']);
      const subscribers = [some, one];
      await Promise.all(
        subscribers.map(({ waitFor }) => waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'))),
      );
      await log.append(`${category}-1`, [...typed('CABD'), ...typed('BC')], 3);
      const typesIn = (seen: readonly Followed[]): string =>
        eventsIn(seen)
          .map(({ type }) => type)
          .join('');
      await some.waitFor((seen) => typesIn(seen) === 'ACACAC');
      await one.waitFor((seen) => typesIn(seen) === 'D');
      await Promise.all(subscribers.map(({ stop }) => stop()));
    });

    it('tells how far it has come past events of types that are not wanted', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const { collected, waitFor, stop } = following(log, before, undefined, ['Wanted']);
      await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
      for (let n = 0; n < 5; n += 1) await log.append(`${category}-${n}`, numbered(500), 'none');
      await waitFor((seen) => seen.some(({ kind }) => kind === 'checkpoint'));
      await stop();
      expect(eventsIn(collected)).to.deep.equal([]);
      const places = collected.flatMap((each) => (each.kind === 'checkpoint' ? [each.position] : []));
      expect(places.every((place) => before === null || place > before)).to.equal(true);
    });

    it('serves several subscribers, each in its own time', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      const subscribers = Array.from({ length: 5 }, () => following(log, before, [category]));
      await log.append(`${category}-1`, numbered(10), 'none');
      await Promise.all(subscribers.map(({ waitFor }) => waitFor((seen) => eventsIn(seen).length >= 10)));
      await Promise.all(subscribers.map(({ stop }) => stop()));
      for (const { collected } of subscribers) expect(eventsIn(collected)).to.have.length(10);
    });
  });

  describe('subscribe, ending', () => {
    it('ends by its signal without an error', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const { waitFor, stop } = following(log, await log.head(), [category]);
      await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
      await stop();
    });

    it('gives nothing when the signal was there before', async () => {
      const { log } = current();
      expect(await all(log.subscribe(null, { signal: AbortSignal.abort() }))).to.deep.equal([]);
    });

    it('gives nothing more once the signal has come', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      await log.append(`${category}-1`, numbered(10), 'none');
      const abort = new AbortController();
      let count = 0;
      for await (const followed of log.subscribe(before, { categories: [category], signal: abort.signal })) {
        if (followed.kind === 'event') count += 1;
        if (count === 3) abort.abort();
      }
      expect(count).to.equal(3);
    });

    it('can be left and taken up again', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const before = await log.head();
      await log.append(`${category}-1`, numbered(6), 'none');
      const first = eventsIn(
        await until(log.subscribe(before, { categories: [category], signal: NEVER }), (seen) => seen.length === 3),
      );
      const rest = await until(
        log.subscribe(first.at(-1)?.position ?? null, { categories: [category], signal: NEVER }),
        (seen) => eventsIn(seen).length === 3,
      );
      expect(idsOf([...first, ...eventsIn(rest)])).to.deep.equal(idsOf(await all(log.readStream(`${category}-1`))));
    });

    it('is dropped with its last position when the log closes', async () => {
      const opened = await open();
      const category = freshCategory(opened);
      const { collected, waitFor, ended } = following(opened.log, await opened.log.head(), [category]);
      const { position } = await opened.log.append(`${category}-1`, numbered(2), 'none');
      await waitFor((seen) => eventsIn(seen).length >= 2 && seen.some(({ kind }) => kind === 'caughtUp'));
      await opened.log.close();
      const error = await rejectionOf(ended);
      expect(error).to.be.instanceOf(SubscriptionDropped);
      expect(error).to.have.deep.property('data', { last: position });
      expect(eventsIn(collected)).to.have.length(2);
      await opened.close();
    });

    it('is refused on a closed log', async () => {
      const opened = await open();
      await opened.log.close();
      const error = await rejectionOf(all(opened.log.subscribe(null, { signal: NEVER })));
      expect(error).to.be.instanceOf(SubscriptionDropped);
      expect(error).to.have.deep.property('data', { last: null });
      await opened.close();
    });
  });
}
