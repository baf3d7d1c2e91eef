/** The contract of the removal of streams. */
import { expect } from 'chai';
import { rejectionOf } from '../support/rejection.js';
import type { CurrentLog } from './contract-bench.js';
import { all, eventsIn, freshCategory, freshStream, idsOf, newEvent, numbered, until } from './contract-bench.js';

export function removeContract(current: CurrentLog): void {
  describe('remove', () => {
    it('removes the events of a stream, whose reads then throw', async () => {
      const { log } = current();
      const stream = freshStream(current());
      await log.append(stream, numbered(3), 'none');
      await log.remove([stream]);
      for (const range of [{}, { from: 1 }, { direction: 'backwards', max: 1 }] as const)
        expect(await rejectionOf(all(log.readStream(stream, range)))).to.include({ code: 'log.stream-removed' });
    });

    it('refuses every later append to it, and to a removed stream that never existed', async () => {
      const { log } = current();
      const [stream, never] = [freshStream(current()), freshStream(current())];
      const events = numbered(2);
      await log.append(stream, events, 'none');
      await log.remove([stream, never]);
      for (const [name, expected] of [
        [stream, 'none'],
        [stream, 1],
        [never, 'none'],
      ] as const)
        expect(await rejectionOf(log.append(name, [newEvent()], expected))).to.include({ code: 'log.stream-removed' });
      expect(await rejectionOf(log.append(stream, events, 'none'))).to.include({ code: 'log.stream-removed' });
    });

    it('may be repeated', async () => {
      const { log } = current();
      const stream = freshStream(current());
      await log.append(stream, numbered(2), 'none');
      await log.remove([stream]);
      await log.remove([stream, stream]);
      expect(await rejectionOf(all(log.readStream(stream)))).to.include({ code: 'log.stream-removed' });
    });

    it('changes no event of other streams and no position', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const names = ['a', 'b', 'a', 'c', 'a'].map((name) => `${category}-${name}`);
      const places: Record<string, number> = {};
      for (const name of names) {
        const revision = (places[name] ?? -1) + 1;
        places[name] = revision;
        await log.append(name, [newEvent()], revision === 0 ? 'none' : revision - 1);
      }
      const kept = (await all(log.readAll(null, { categories: [category] }))).filter(
        ({ stream }) => stream !== names[0],
      );
      await log.remove([`${category}-a`]);
      const found = (await all(log.readAll(null, { categories: [category] }))).filter(
        ({ stream }) => stream !== names[0],
      );
      expect(found).to.deep.equal(kept);
      expect(await all(log.readStream(`${category}-b`))).to.have.length(1);
      const { position } = await log.append(`${category}-d`, [newEvent()], 'none');
      expect(kept.every((event) => event.position < position)).to.equal(true);
    });

    it('does not move the head back', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const { position } = await log.append(stream, numbered(2), 'none');
      await log.remove([stream]);
      expect((await log.head()) ?? '').to.satisfy((head: string) => head >= position);
    });

    it('lets subscriptions pass over the gap, from before it and from within it', async () => {
      const { log } = current();
      const category = freshCategory(current());
      const [gone, kept] = [`${category}-gone`, `${category}-kept`];
      const first = await log.append(gone, numbered(2), 'none');
      await log.append(kept, [newEvent()], 'none');
      await log.append(gone, numbered(2), 1);
      await log.remove([gone]);
      const last = newEvent();
      await log.append(kept, [last], 0);
      for (const after of [null, first.position]) {
        const over = new AbortController();
        const subscribed = log.subscribe(after, { categories: [category], signal: over.signal });
        const followed = await until(subscribed, (found) => idsOf(eventsIn(found)).includes(last.id));
        over.abort();
        const revisions = eventsIn(followed).flatMap((event) => (event.stream === kept ? [event.revision] : []));
        expect(revisions).to.deep.equal([0, 1]);
      }
    });

    it('makes a read that it meets throw, and never end early', async () => {
      const { log } = current();
      const stream = freshStream(current());
      for (let at = 0; at < 3; at += 1) await log.append(stream, numbered(400), at === 0 ? 'none' : at * 400 - 1);
      let read = 0;
      const reading = async (): Promise<void> => {
        for await (const _ of log.readStream(stream, { pageChars: 1 })) {
          read += 1;
          if (read === 2) await log.remove([stream]);
        }
      };
      const fault = await rejectionOf(reading()).catch(() => null);
      // A server may have sent everything before.
      if (read < 1_200) expect(fault).to.include({ code: 'log.stream-removed' });
    });
  });
}
