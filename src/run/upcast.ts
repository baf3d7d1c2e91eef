/**
 * Events of earlier schema versions, as today's fold reads them. Applied where events are folded, never where they are
 * checked or shown: a record is hashed, exported and listed as it was written.
 */

/** A change that came with a version of the events' data. */
export interface Upcast {
  /** Type of the events it changes. */
  readonly type: string;
  /** The first version written so. */
  readonly to: number;
  /**
   * Data of any earlier version, after the changes that came before this one, as version `to` writes it. An export does
   * not tell its version, so data that is written so already must come out as it went in.
   */
  readonly change: (data: object) => object;
}

/** Every change since version 1, oldest first. Raise log/chain's version with each. */
const UPCASTS: readonly Upcast[] = [];

/** What may be upcast. */
interface Versioned {
  readonly type: string;
  readonly data: object;
  /** Version its data was written in; absent: today's, or not told. */
  readonly schemaVersion?: number;
}

/** The event as today's version would have written it. */
export function upcast<E extends Versioned>(event: E, upcasts: readonly Upcast[] = UPCASTS): E {
  const { type, schemaVersion = 0 } = event;
  const due = upcasts.filter((each) => each.type === type && each.to > schemaVersion);
  if (due.length === 0) return event;
  return { ...event, data: due.reduce((data, { change }) => change(data), event.data) };
}
