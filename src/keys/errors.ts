/** Errors of keys. */
import { CouncilError } from '../errors.js';

/** What is asked of a key cannot be given; `field` names what is at fault. Nothing is recorded. */
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

/** The key was to be the first, and is not. */
export class KeyNotFirst extends CouncilError {
  readonly code = 'key.not-first';
  constructor() {
    super('Cannot add the key without another: it is not the first', {});
  }
}

/** The key by which keys are changed opens nothing any more; it may have been revoked elsewhere, a moment ago. */
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

/** As many keys were added as there can be, revoked and expired ones included. */
export class TooManyKeys extends CouncilError<{ limit: number }> {
  readonly code = 'key.too-many';
  constructor(data: { limit: number }) {
    super(`Cannot add a key: ${data.limit} were added, and no log takes more`, data);
  }
}

/** Others changed the keys again and again in the meantime. Nothing is changed. */
export class KeysContended extends CouncilError {
  readonly code = 'key.contended';
  constructor(options?: ErrorOptions) {
    super('Cannot change the keys: others keep changing them', {}, options);
  }
}

/** An event of a stream of keys, sessions or tickets cannot be read. */
export class KeysCorrupt extends CouncilError<{ stream: string; seq: number; reason: string }> {
  readonly code = 'key.damaged';
  constructor(data: { stream: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of the keys is damaged at seq ${data.seq} of "${data.stream}": ${data.reason}`, data, options);
  }
}

/** More sessions and tickets are to be looked up at once than there is room for. */
export class LookupsCrowded extends CouncilError {
  readonly code = 'key.crowded';
  constructor() {
    super('Cannot look up who asks: too many ask at once', {});
  }
}
