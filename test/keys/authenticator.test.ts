import { expect } from 'chai';
import { join } from 'node:path';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { lastEvent } from '../../src/eventlog/port.js';
import { Authenticator } from '../../src/keys/authenticator.js';
import type { KeyGrant } from '../../src/keys/authenticator.js';
import { TooManyLookups, TooManyTickets } from '../../src/keys/errors.js';
import { changedLog } from '../support/changed-log.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

describe('Authentication', () => {
  let dir: TempDir;
  let log: EventLog;
  let system: ManualSystem;
  let authenticator: Authenticator;
  let key: string;

  beforeEach(async () => {
    dir = tempDir();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite'), keepLast: ['tickets'] });
    system = manualSystem();
    authenticator = await open(log);
    key = (await authenticator.keys.add({ name: 'ann', scopes: ['admin'], expiresAt: null }, { actor: null })).text;
  });
  afterEach(async () => {
    await authenticator.stop();
    await log.close();
    dir.remove();
  });

  async function open(on: EventLog): Promise<Authenticator> {
    const opened = new Authenticator({ log: on, system, instanceId: 'one', onFault: () => undefined });
    await opened.keys.load();
    return opened;
  }

  async function grantOf(text: string): Promise<KeyGrant> {
    return (await authenticator.byKey(text)).grant ?? expect.fail('refused');
  }
  const signIn = async (): Promise<string> => (await authenticator.signIn(await grantOf(key))).text;

  it('accepts a ticket once, within 30 seconds, also if it was issued in a session', async () => {
    const issue = async (session: string | null): Promise<string> =>
      (await authenticator.tickets.issue({ actor: 'ann', session })).text;
    const [used, late] = [await issue(null), await issue(null)];
    expect((await authenticator.byTicket(used)).grant?.actor).to.equal('ann');
    expect(await authenticator.byTicket(used)).to.include({ refusal: 'unknown' });
    system.advance(30 * SECOND_MS);
    expect(await authenticator.byTicket(late)).to.include({ refusal: 'unknown' });

    const { grant } = await authenticator.bySession(await signIn());
    const inSession = await authenticator.byTicket(await issue(grant?.session ?? expect.fail()));
    expect(inSession.grant).to.deep.equal(grant);
  });

  it('issues at most 100 open tickets for a key, and more when some are redeemed or expire', async () => {
    const issue = async (actor: string): Promise<string> =>
      (await authenticator.tickets.issue({ actor, session: null })).text;
    const open = await Promise.all(Array.from({ length: 100 }, () => issue('ann')));
    expect(await rejectionOf(issue('ann'))).to.be.instanceOf(TooManyTickets);
    await issue('ben');
    expect((await authenticator.byTicket(open[0] ?? '')).grant?.actor).to.equal('ann');
    await issue('ann');
    expect(await rejectionOf(issue('ann'))).to.be.instanceOf(TooManyTickets);
    system.advance(30 * SECOND_MS);
    await issue('ann');
  });

  it('issues and redeems tickets of a key while 2,500 forged ones that name its stream wait for the log', async () => {
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    let reads = 0;
    const slow = await open(
      changedLog(log, {
        async *readStream(stream, range) {
          // The first 32 reads are those of forged tickets, and as many may run at a time.
          if (stream.startsWith('tickets-') && (reads += 1) <= 32) await answered;
          yield* log.readStream(stream, range);
        },
      }),
    );
    const forged = Array.from({ length: 2_500 }, (_, index) =>
      slow.byTicket(system.sha256('ann').slice(0, 12) + String(index).padStart(31, 'x')).catch(() => null),
    );
    const issued = await slow.tickets.issue({ actor: 'ann', session: null });
    answer();
    await Promise.all(forged);
    expect((await slow.byTicket(issued.text)).grant?.actor).to.equal('ann');
    await slow.stop();
  });

  it('leaves no ticket on the log that is redeemed or has expired', async () => {
    const issue = async (): Promise<string> =>
      (await authenticator.tickets.issue({ actor: 'ann', session: null })).text;
    const open = async (): Promise<number> => {
      const streams = new Set<string>();
      for await (const { stream } of log.readAll(null)) streams.add(stream);
      expect([...streams].filter((stream) => stream.startsWith('ticket'))).to.deep.equal([]);
      const last = await lastEvent(log, `tickets-${system.sha256('ann').slice(0, 12)}`);
      return (JSON.parse(last?.data ?? '{"open":[]}') as { readonly open: readonly unknown[] }).open.length;
    };
    const [redeemed] = [await issue(), await issue()];
    expect(await open()).to.equal(2);
    await authenticator.byTicket(redeemed);
    expect(await open()).to.equal(1);
    system.advance(30 * SECOND_MS);
    await untilTrue(async () => (await open()) === 0);
  });

  it('reports whether a key was revoked or has expired', async () => {
    const request = { name: 'ben', scopes: ['read'], expiresAt: '2026-01-01T01:00:00.000Z' } as const;
    const { text } = await authenticator.keys.add(request, { actor: 'ann' });
    system.advance(HOUR_MS);
    expect(await authenticator.byKey(text)).to.deep.equal({ grant: null, refusal: 'expired', actor: 'ben' });
    await authenticator.keys.revoke('ben', 'ann');
    expect(await authenticator.byKey(text)).to.deep.equal({ grant: null, refusal: 'revoked', actor: 'ben' });
  });

  it('gives a session the earlier end of its key and its 12 hours', async () => {
    const request = { name: 'ben', scopes: ['read'], expiresAt: '2026-01-01T01:00:00.000Z' } as const;
    const { text } = await authenticator.keys.add(request, { actor: 'ann' });
    expect((await authenticator.signIn(await grantOf(text))).grant.expiresAt).to.equal(request.expiresAt);
    expect((await authenticator.bySession(await signIn())).grant?.expiresAt).to.equal('2026-01-01T12:00:00.000Z');
  });

  it('ends a connection when its key is revoked, and at once if the key has already ended', async () => {
    const ended: string[] = [];
    const grant = await grantOf(key);
    authenticator.watch(grant, () => ended.push('open'));
    authenticator.watch(grant, () => ended.push('closed before'))();
    await authenticator.keys.revoke('ann', null);
    expect(ended).to.deep.equal(['open']);
    authenticator.watch(grant, () => ended.push('opened later'));
    expect(ended).to.deep.equal(['open', 'opened later']);
  });

  it('refuses a session and a ticket with a forged record', async () => {
    const session = await signIn();
    const { text: ticket } = await authenticator.tickets.issue({ actor: 'ann', session: null });
    const forged = await open(
      changedLog(log, {
        async *readStream(stream, range) {
          const isPass = /^(session|tickets)-/.test(stream);
          for await (const event of log.readStream(stream, range)) {
            yield isPass ? { ...event, data: event.data.replace('2026', '2096') } : event;
          }
        },
      }),
    );
    expect(await forged.bySession(session)).to.include({ refusal: 'unknown' });
    expect(await forged.byTicket(ticket)).to.include({ refusal: 'unknown' });
    expect((await authenticator.bySession(session)).grant?.actor).to.equal('ann');
    await forged.stop();
  });

  it('refuses further made-up sessions while 2,000 wait for the log', async () => {
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const slow = await open(
      changedLog(log, {
        async *readStream(stream, range) {
          if (stream.startsWith('session-')) await answered;
          yield* log.readStream(stream, range);
        },
      }),
    );
    const madeUp = (index: number): string => String(index).padStart(43, '0');
    const waiting = Array.from({ length: 2_032 }, (_, index) => slow.bySession(madeUp(index)));
    expect(await rejectionOf(slow.bySession(madeUp(9_999)))).to.be.instanceOf(TooManyLookups);
    answer();
    for (const found of await Promise.all(waiting)) expect(found).to.include({ refusal: 'unknown' });
    await slow.stop();
  });
});
