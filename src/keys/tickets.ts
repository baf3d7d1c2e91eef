/**
 * Tickets, for clients that can send neither a header nor a cookie when they open a socket or an event stream. The open
 * tickets of a key are the last event of one stream, which the log keeps alone: so tickets leave the log when they are
 * redeemed or expire.
 */
import { changeAggregate, headAt } from '../eventsourcing/aggregate.js';
import type { AggregateChange, StreamHead } from '../eventsourcing/aggregate.js';
import { GENESIS_HASH, checkLink } from '../eventsourcing/hash-chain.js';
import { lastEvent } from '../eventlog/port.js';
import type { TicketsChangedData } from '../generated/schemas.js';
import { KeyedSequencer, semaphore, TaskTracker } from '../system/async/tasks.js';
import type { Grant } from './caller.js';
import { KeysCorrupt, KeysContended, TooManyLookups, TooManyTickets } from './errors.js';
import type { TicketFact } from './events.js';
import { ticketEventReader } from './events.js';
import type { PassDeps } from './pass-streams.js';
import { MAX_WAITING_READS, READS_AT_A_TIME, isPassText } from './pass-streams.js';

/** Lifetime of an unused ticket, in milliseconds. */
const TICKET_MS = 30_000;
/** Tickets of a key that are neither redeemed nor expired, at most. */
const MAX_OPEN = 100;
/** Conflicts with other instances before a change fails. */
const MAX_CONFLICTS = 50;
/** Characters of a ticket that name its stream: the beginning of the hash of its key's name. The others are random. */
const STREAM_CHARS = 12;

/** A new ticket. Its text cannot be read again. */
export interface NewTicket {
  readonly text: string;
  /** ISO 8601. */
  readonly expiresAt: string;
}

/** A ticket as it is recorded. */
export type Ticket = TicketsChangedData['open'][number];

/** The tickets of a stream, expired ones included, and the event that holds them. */
interface Recorded {
  readonly tickets: readonly Ticket[];
  readonly head: StreamHead | null;
}

export class TicketStore {
  readonly #deps: PassDeps;
  readonly #tasks = new TaskTracker();
  readonly #inTurn = new KeyedSequencer();
  /** Bounds the reads for tickets that callers send, which may be forged. */
  readonly #reads = semaphore(READS_AT_A_TIME, { maxWaiting: MAX_WAITING_READS, full: () => new TooManyLookups() });
  /** Cancels the sweep of a stream with open tickets. */
  readonly #sweeps = new Map<string, () => void>();

  constructor(deps: PassDeps) {
    this.#deps = deps;
  }

  /**
   * Issues a ticket. Without keys the service does not check tickets, so nothing is recorded.
   *
   * @throws {TooManyTickets} the key has `MAX_OPEN` open ones
   */
  async issue({ actor: name, session }: Pick<Grant, 'actor' | 'session'>): Promise<NewTicket> {
    const { secret, sha256, now } = this.#deps.system;
    const expiresAt = new Date(Date.parse(now()) + TICKET_MS).toISOString();
    if (name === null) return { text: secret(), expiresAt };
    const id = sha256(name).slice(0, STREAM_CHARS);
    const text = id + secret().slice(0, -STREAM_CHARS);
    const ticket = { hash: sha256(text), name, session, expiresAt };
    await this.#change(id, (tickets) => {
      const open = this.#openIn(tickets);
      if (open.length >= MAX_OPEN) throw new TooManyTickets({ name, limit: MAX_OPEN });
      return [...open, ticket];
    });
    this.#sweepLater(id);
    return { text, expiresAt };
  }

  /**
   * Redeems a ticket; null if it is unknown, used or expired. Of concurrent callers, the first append wins.
   *
   * @throws {LogUnavailable | TooManyLookups | KeysContended}
   */
  async redeem(text: string): Promise<Ticket | null> {
    if (!isPassText(text)) return null;
    const hash = this.#deps.system.sha256(text);
    const id = text.slice(0, STREAM_CHARS);
    // Checks first that the ticket exists, so that forged ones do not wait in the turn of the key that they name.
    const { tickets: recorded } = await this.#reads.run(() => this.#read(streamOf(id)));
    if (!recorded.some((each) => each.hash === hash)) return null;
    let found: Ticket | null = null;
    await this.#change(id, (tickets) => {
      const open = this.#openIn(tickets);
      found = open.find((each) => each.hash === hash) ?? null;
      return found === null ? null : open.filter((each) => each.hash !== hash);
    });
    return found;
  }

  /** Waits until the log has answered the appends in flight. */
  stop(): Promise<void> {
    for (const cancel of this.#sweeps.values()) cancel();
    this.#sweeps.clear();
    return this.#tasks.end();
  }

  #openIn(tickets: readonly Ticket[]): readonly Ticket[] {
    const now = this.#deps.system.now();
    return tickets.filter(({ expiresAt }) => expiresAt > now);
  }

  /** @param decide returns the tickets to record, or null if nothing changes */
  async #change(id: string, decide: (tickets: readonly Ticket[]) => readonly Ticket[] | null): Promise<void> {
    const stream = streamOf(id);
    if (this.#inTurn.count(id) >= MAX_WAITING_READS) throw new TooManyLookups();
    const change: AggregateChange<Recorded, TicketFact> = {
      stream,
      subject: id,
      read: () => this.#read(stream),
      headOf: ({ head }) => head,
      decide: ({ tickets }) => {
        const open = decide(tickets);
        return open === null ? [] : [{ type: 'TicketsChanged', data: { open: [...open] } }];
      },
      limit: { conflicts: MAX_CONFLICTS, error: (cause) => new KeysContended({ cause }) },
    };
    const changed = this.#inTurn.run(id, () => changeAggregate(this.#deps, change, this.#tasks.signal));
    await this.#tasks.track(changed);
  }

  /** The last event of a stream; without tickets if it is missing or corrupt. */
  async #read(stream: string): Promise<Recorded> {
    const recorded = await lastEvent(this.#deps.log, stream);
    if (recorded === null) return { tickets: [], head: null };
    // The log may not keep the event before, so the chain of each event begins with itself.
    const head = { ...headAt(recorded), hash: GENESIS_HASH };
    try {
      const event = ticketEventReader.eventOf(recorded);
      const isIntact = checkLink(GENESIS_HASH, event, this.#deps.system.sha256);
      return { tickets: isIntact ? event.data.open : [], head };
    } catch (error) {
      if (error instanceof KeysCorrupt) return { tickets: [], head };
      throw error;
    }
  }

  /** Removes expired tickets from the log, and again while others are open. */
  #sweepLater(id: string): void {
    if (this.#sweeps.has(id) || this.#tasks.isEnding) return;
    const cancel = this.#deps.system.after(TICKET_MS, () => {
      this.#sweeps.delete(id);
      let isLeft = true;
      const swept = this.#change(id, (tickets) => {
        const open = this.#openIn(tickets);
        isLeft = open.length > 0;
        return open.length < tickets.length ? open : null;
      });
      // After an error the tickets stay on the log until the next change or sweep.
      swept.catch(() => undefined).finally(() => void (isLeft && this.#sweepLater(id)));
    });
    this.#sweeps.set(id, cancel);
  }
}

function streamOf(id: string): string {
  return `tickets-${id}`;
}
