/** The contract of appends for every event log. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { AppendInvalid, AppendTooLarge, RevisionConflict } from '../../src/eventlog/errors.js';
import type { NewEvent } from '../../src/eventlog/port.js';
import { MAX_APPEND_BYTES } from '../../src/eventlog/port.js';
import { rejectionOf } from '../support/rejection.js';
import type { CurrentLog } from './contract-bench.js';
import { all, freshStream, idsOf, newEvent, numbered } from './contract-bench.js';

/** Appends at the expected revision, atomically. */
export function appendContract(current: CurrentLog): void {
  describe('append', () => {
    it('creates a stream', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const appended = await log.append(stream, numbered(3), 'none');
      expect(appended.revision).to.equal(2);
      expect(appended.position).to.equal((await all(log.readStream(stream))).at(-1)?.position);
    });

    it('appends after revision 0', async () => {
      const { log } = current();
      const stream = freshStream(current());
      await log.append(stream, numbered(1), 'none');
      expect((await log.append(stream, numbered(1), 0)).revision).to.equal(1);
    });

    it('refuses another revision, and reports the expected and the actual one', async () => {
      const { log } = current();
      const stream = freshStream(current());
      await log.append(stream, numbered(3), 'none');
      for (const expected of ['none', 0, 1, 3, 7] as const) {
        const error = await rejectionOf(log.append(stream, numbered(1), expected));
        expect(error).to.be.instanceOf(RevisionConflict);
        expect(error).to.have.deep.property('data', { stream, expected, actual: 2 });
      }
      expect(await all(log.readStream(stream))).to.have.length(3);
    });

    it('refuses a revision of a missing stream', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const error = await rejectionOf(log.append(stream, numbered(1), 0));
      expect(error).to.be.instanceOf(RevisionConflict);
      expect(error).to.have.deep.property('data', { stream, expected: 0, actual: 'none' });
      expect((await log.append(stream, numbered(1), 'none')).revision).to.equal(0);
    });

    it('writes all events of an append or none', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const [first, ...rest] = numbered(10);
      await log.append(stream, [newEvent()], 'none');
      await rejectionOf(log.append(stream, first === undefined ? rest : [first, ...rest], 'none'));
      expect(await all(log.readStream(stream))).to.have.length(1);
    });

    it('keeps events as JSON values, whatever their text', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const data = {
        text: 'a\u0000b \u2028 "quoted" \\ é 漢字 🜁',
        deep: [{ n: 1.5e300 }, null, true, []],
        '': { '10': 1, '9': 2 },
      };
      const event = newEvent(data, 'Ünicode');
      await log.append(stream, [event], 'none');
      const [recorded] = await all(log.readStream(stream));
      expect(JSON.parse(recorded?.data ?? '')).to.deep.equal(data);
      expect(recorded).to.deep.include({
        id: event.id,
        type: 'Ünicode',
        metadata: event.metadata,
        stream,
        revision: 0,
      });
    });
  });

  describe('append, repeated', () => {
    it('returns the first revision and position', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const events = numbered(2);
      const first = await log.append(stream, events, 'none');
      expect(await log.append(stream, events, 'none')).to.deep.equal(first);
      expect(await all(log.readStream(stream))).to.have.length(2);
    });

    it('returns the first revision and position after later events too', async () => {
      const { log } = current();
      const stream = freshStream(current());
      await log.append(stream, numbered(1), 'none');
      const events = numbered(2);
      const first = await log.append(stream, events, 0);
      await log.append(stream, numbered(5), 2);
      expect(await log.append(stream, events, 0)).to.deep.equal(first);
      expect(await all(log.readStream(stream))).to.have.length(8);
    });

    it('is written once when sent twice at the same time', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const append = (): ReturnType<typeof log.append> => log.append(stream, events, 'none');
      const events = numbered(2);
      const [first, second] = await Promise.all([append(), append()]);
      expect(second).to.deep.equal(first);
      expect(await all(log.readStream(stream))).to.have.length(2);
    });

    it('conflicts if it has one event more, or another id', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const events = numbered(2);
      await log.append(stream, events, 'none');
      for (const other of [[...events, newEvent()], [...events.slice(0, 1), newEvent()], [...events].reverse()]) {
        expect(await rejectionOf(log.append(stream, other, 'none'))).to.be.instanceOf(RevisionConflict);
      }
    });

    it('conflicts if it expects another revision', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const events = numbered(1);
      await log.append(stream, numbered(1), 'none');
      await log.append(stream, events, 0);
      await log.append(stream, numbered(1), 1);
      expect(await rejectionOf(log.append(stream, events, 'none'))).to.be.instanceOf(RevisionConflict);
      expect(await rejectionOf(log.append(stream, events, 1))).to.be.instanceOf(RevisionConflict);
    });
  });

  describe('append, concurrent', () => {
    it('accepts one of a hundred at the same revision', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const attempts = Array.from({ length: 100 }, (_, n) => newEvent({ n }));
      const settled = await Promise.allSettled(attempts.map((event) => log.append(stream, [event], 'none')));
      const losers = settled.flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []));
      expect(losers).to.have.length(99);
      for (const error of losers) {
        expect(error).to.be.instanceOf(RevisionConflict);
        expect(error).to.have.deep.property('data', { stream, expected: 'none', actual: 0 });
      }
      const winner = attempts[settled.findIndex((each) => each.status === 'fulfilled')];
      expect(idsOf(await all(log.readStream(stream)))).to.deep.equal([winner?.id]);
    });

    it('reports a conflict only once the winning event can be read', async () => {
      const { log } = current();
      const rounds = Array.from({ length: 30 }, () => freshStream(current()));
      await Promise.all(
        rounds.map(async (stream) => {
          const tries = [1, 2].map(() =>
            log.append(stream, [newEvent()], 'none').catch(async (error: unknown) => {
              expect(error).to.be.instanceOf(RevisionConflict);
              expect(await all(log.readStream(stream))).to.have.length(1);
            }),
          );
          await Promise.all(tries);
        }),
      );
    });
  });

  describe('append, malformed', () => {
    const malformed: readonly (readonly [string, (valid: NewEvent) => readonly NewEvent[]])[] = [
      ['no events', () => []],
      ['an id twice', (valid) => [valid, newEvent(), valid]],
      ['two equal ids', (valid) => [valid, valid]],
      ['an id that is no UUID', (valid) => [{ ...valid, id: 'one' }]],
      ['no type', (valid) => [{ ...valid, type: '' }]],
      ['data that is no object', (valid) => [{ ...valid, data: '[1]' }]],
      ['no data', (valid) => [{ ...valid, data: '' }]],
      ['an unpaired surrogate', (valid) => [{ ...valid, data: '{"text":"\ud800"}' }]],
    ];

    for (const [what, make] of malformed) {
      it(`refuses ${what}, and writes nothing`, async () => {
        const { log } = current();
        const stream = freshStream(current());
        expect(await rejectionOf(log.append(stream, make(newEvent()), 'none'))).to.be.instanceOf(AppendInvalid);
        expect(await all(log.readStream(stream))).to.deep.equal([]);
      });
    }

    it('refuses invalid stream names', async () => {
      const { log } = current();
      for (const name of ['', '$all', `run-\u0000${randomUUID()}`, `run-${'x'.repeat(600)}`]) {
        expect(await rejectionOf(log.append(name, numbered(1), 'none'))).to.be.instanceOf(AppendInvalid);
      }
    });

    it('refuses invalid revisions', async () => {
      const { log } = current();
      for (const expected of [-1, 0.5, Number.NaN, Infinity]) {
        expect(await rejectionOf(log.append(freshStream(current()), numbered(1), expected))).to.be.instanceOf(
          AppendInvalid,
        );
      }
    });
  });

  describe('append, large', () => {
    const sized = (bytes: number): NewEvent => {
      const bare: NewEvent = { id: randomUUID(), type: 'Filled', data: '{"text":""}', metadata: {} };
      const room = bytes - Buffer.byteLength(bare.type + bare.data + JSON.stringify(bare.metadata));
      return { ...bare, data: JSON.stringify({ text: 'x'.repeat(room) }) };
    };

    it('accepts the largest allowed size', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const events = [sized(MAX_APPEND_BYTES / 2), sized(MAX_APPEND_BYTES / 2)];
      await log.append(stream, events, 'none');
      expect((await all(log.readStream(stream))).map(({ data }) => data.length)).to.deep.equal(
        events.map(({ data }) => data.length),
      );
    });

    it('refuses one byte more, and reports the size and the limit', async () => {
      const { log } = current();
      const stream = freshStream(current());
      const events = [sized(MAX_APPEND_BYTES / 2), sized(MAX_APPEND_BYTES / 2 + 1)];
      const error = await rejectionOf(log.append(stream, events, 'none'));
      expect(error).to.be.instanceOf(AppendTooLarge);
      expect(error).to.have.deep.property('data', { stream, bytes: MAX_APPEND_BYTES + 1, limit: MAX_APPEND_BYTES });
      expect(await all(log.readStream(stream))).to.deep.equal([]);
    });

    it('counts bytes, not characters', async () => {
      const { log } = current();
      const event = newEvent({ text: '漢'.repeat(MAX_APPEND_BYTES / 3) });
      expect(await rejectionOf(log.append(freshStream(current()), [event], 'none'))).to.be.instanceOf(AppendTooLarge);
    });
  });
}
