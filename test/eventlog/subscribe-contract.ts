/** The contract of subscriptions for every event log. */
import { expect } from 'chai';
import { SubscriptionDropped } from '../../src/eventlog/errors.js';
import type { Followed, NewEvent } from '../../src/eventlog/port.js';
import { rejectionOf } from '../support/rejection.js';
import type { CurrentLog, OpenLog } from './contract-bench.js';
import { all, eventsIn, freshCategory, idsOf, newEvent, numbered, until } from './contract-bench.js';
import { following } from './open-subscription.js';
import { IS_SOAK } from '../support/soak.js';

const NEVER = new AbortController().signal;
/** Forty writers append at the same time, each two events at a time. */
const EACH = IS_SOAK ? 25 : 10;

/** Subscriptions deliver history and then new events, in the log's order. */
export function subscribeContract(current: CurrentLog, open: OpenLog): void {
  describe('subscribe', () => {
    it('delivers history, then caughtUp once, then new events', async () => {
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

    it('delivers the same events as readAll', async () => {
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

    it('delivers every event once, in order, during concurrent appends', async () => {
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

    it('delivers every event to a slow consumer', async () => {
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

    it('delivers only events of the wanted types', async () => {
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

    it('delivers checkpoints past events of other types', async () => {
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
  });

  describe('subscribe, ending', () => {
    it('ends without an error when its signal aborts', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const { waitFor, stop } = following(log, await log.head(), [category]);
      await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
      await stop();
    });

    it('delivers nothing if its signal has aborted before', async () => {
      const { log } = current();
      expect(await all(log.subscribe(null, { signal: AbortSignal.abort() }))).to.deep.equal([]);
    });

    it('delivers nothing more once its signal has aborted', async () => {
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
