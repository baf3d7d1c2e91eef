/** Errors of keys. */
import { CouncilError } from '../errors.js';

/** A key cannot be added as requested; `field` names the field at fault. Nothing is recorded. */
export class KeyRefused extends CouncilError<{ field: 'name' | 'scopes' | 'expires'; reason: string }> {
  readonly code = 'key.refused';
  constructor(data: { field: 'name' | 'scopes' | 'expires'; reason: string }) {
    super(`Cannot add the key: ${data.reason}`, data);
  }
}

/** A key has, or had, the name. */
export class KeyTaken extends CouncilError<{ name: string }> {
  readonly code = 'key.taken';
  constructor(data: { name: string }) {
    super(`Cannot add key "${data.name}": the name was given before, and is never given again`, data);
  }
}

/** The caller may add only the first key, but the service already has one. */
export class KeyNotFirst extends CouncilError {
  readonly code = 'key.not-first';
  constructor() {
    super('Cannot add the key: only the first key can be added without another key', {});
  }
}

/** The key with which the caller changes keys was revoked or has expired meanwhile. */
export class KeyEnded extends CouncilError<{ name: string; end: 'revoked' | 'expired' }> {
  readonly code = 'key.ended';
  constructor(data: { name: string; end: 'revoked' | 'expired' }) {
    super(`Cannot change the keys by key "${data.name}": it ${ENDED[data.end]}`, data);
  }
}

const ENDED = { revoked: 'was revoked', expired: 'has expired' } as const;

/** No key ever had this name. */
export class KeyUnknown extends CouncilError<{ name: string }> {
  readonly code = 'key.unknown';
  constructor(data: { name: string }) {
    super(`Cannot find key "${data.name}"`, data);
  }
}

/** The limit of keys is reached, including revoked and expired ones. */
export class TooManyKeys extends CouncilError<{ limit: number }> {
  readonly code = 'key.too-many';
  constructor(data: { limit: number }) {
    super(`Cannot add a key: the limit of ${data.limit} keys is reached`, data);
  }
}

/** Other instances changed the keys at every attempt. Nothing is recorded. */
export class KeysContended extends CouncilError {
  readonly code = 'key.contended';
  constructor(options?: ErrorOptions) {
    super('Cannot change the keys: other instances keep changing them', {}, options);
  }
}

/** An event of the keys, of a session or of a ticket cannot be read. */
export class KeysCorrupt extends CouncilError<{ stream: string; seq: number; reason: string }> {
  readonly code = 'key.corrupt';
  constructor(data: { stream: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of the keys is damaged at seq ${data.seq} of "${data.stream}": ${data.reason}`, data, options);
  }
}

/** A key has as many tickets as it may have that are neither used nor expired. */
export class TooManyTickets extends CouncilError<{ name: string; limit: number }> {
  readonly code = 'key.too-many-tickets';
  constructor(data: { name: string; limit: number }) {
    super(`Cannot issue a ticket: key "${data.name}" has ${data.limit} that are neither used nor expired`, data);
  }
}

/** Too many sessions and tickets are being looked up at once. */
export class TooManyLookups extends CouncilError {
  readonly code = 'key.crowded';
  constructor() {
    super('Cannot check the session or ticket: too many are being checked at once', {});
  }
}
