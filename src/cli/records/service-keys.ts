/** The keys of a running service, read and changed with its client. */
import type { ProblemCode } from '../../client/errors.js';
import { CouncilError as ServiceError } from '../../client/errors.js';
import { KeyTaken, KeyUnknown } from '../../keys/errors.js';
import type { Key } from '../../generated/schemas.js';
import type { Scope } from '../../keys/caller.js';
import { isKeyName } from '../../keys/key-request.js';
import type { ServiceOptions } from '../service-client.js';
import { serviceClient } from '../service-client.js';

/** A key to add. */
interface WantedKey {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** A duration such as `30d`, or null if the key never expires. */
  readonly expires: string | null;
}

/** The keys as the commands see them: at a running service, or on the log itself. */
export interface KeyBook {
  /** Resolves with the text of the new key, which cannot be read again. */
  add(wanted: WantedKey): Promise<string>;
  /** Every key that was ever added, the oldest first. */
  list(): Promise<readonly Key[]>;
  /** @throws {KeyUnknown} */
  revoke(name: string): Promise<void>;
}

export interface ServiceKeysOptions extends ServiceOptions {
  /** Aborts the calls. */
  readonly signal: AbortSignal;
}

/** @param url of the service, without trailing slash */
export function serviceKeys(url: string, { signal, ...service }: ServiceKeysOptions): KeyBook {
  const { keys } = serviceClient(url, service);
  return {
    async add({ name, scopes, expires }) {
      const adding = keys.add({ name, scopes, signal, ...(expires !== null && { expiresIn: expires }) });
      return (await meaning(adding, 'key_taken', () => new KeyTaken({ name }))).key;
    },
    list: () => keys.list({ signal }),
    async revoke(name) {
      // An invalid name may lead to another path.
      if (!isKeyName(name)) throw new KeyUnknown({ name });
      await meaning(keys.revoke(name, { signal }), 'key_unknown', () => new KeyUnknown({ name }));
    },
  };
}

/** Translates a refusal with one code. */
async function meaning<T>(sent: Promise<T>, code: ProblemCode, error: () => Error): Promise<T> {
  try {
    return await sent;
  } catch (refusal) {
    throw refusal instanceof ServiceError && refusal.code === code ? error() : refusal;
  }
}
