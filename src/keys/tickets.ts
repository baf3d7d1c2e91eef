/** Tickets, for clients that can send neither a header nor a cookie when they open a socket or an event stream. */
import { RevisionConflict } from '../eventlog/errors.js';
import type { System } from '../system/system.js';
import type { Grant } from './caller.js';
import type { TicketFact } from './events.js';
import { ticketEventReader } from './events.js';
import type { PassDeps, PassStreams } from './pass-streams.js';
import { isPassText, passStreams } from './pass-streams.js';

/** Lifetime of an unused ticket, in milliseconds. */
const TICKET_MS = 30_000;

/** A new ticket. Its text cannot be read again. */
export interface NewTicket {
  readonly text: string;
  /** ISO 8601. */
  readonly expiresAt: string;
}

export interface Ticket {
  /** Name of the key. */
  readonly name: string;
  /** Id of the session that requested it, or null if a key did. */
  readonly session: string | null;
}

export class TicketStore {
  readonly #system: System;
  readonly #streams: PassStreams<TicketFact>;

  constructor(deps: PassDeps) {
    this.#system = deps.system;
    this.#streams = passStreams('ticket', ticketEventReader, deps);
  }

  /** Issues a ticket. Without keys the service does not check tickets, so nothing is recorded. */
  async issue({ actor, session }: Pick<Grant, 'actor' | 'session'>): Promise<NewTicket> {
    const { secret, sha256, now } = this.#system;
    const text = secret();
    const expiresAt = new Date(Date.parse(now()) + TICKET_MS).toISOString();
    if (actor !== null) {
      await this.#streams.append(sha256(text), { type: 'TicketIssued', data: { name: actor, session, expiresAt } }, []);
    }
    return { text, expiresAt };
  }

  /** Redeems a ticket; null if it is unknown, used or expired. Of concurrent callers, the first append wins. */
  async redeem(text: string): Promise<Ticket | null> {
    if (!isPassText(text)) return null;
    const id = this.#system.sha256(text);
    const events = await this.#streams.read(id);
    const [issued] = events;
    if (issued?.type !== 'TicketIssued' || events.length > 1) return null;
    if (issued.data.expiresAt <= this.#system.now()) return null;
    try {
      await this.#streams.append(id, { type: 'TicketRedeemed', data: {} }, events);
    } catch (error) {
      if (error instanceof RevisionConflict) return null;
      throw error;
    }
    return issued.data;
  }

  stop(): Promise<void> {
    return this.#streams.stop();
  }
}
