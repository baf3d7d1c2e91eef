/** The keys of a running service, read and changed with its client. */
import type { ProblemCode } from '../../client/errors.js';
import { CouncilError as ServiceError } from '../../client/errors.js';
import { KeyTaken, KeyUnknown } from '../../keys/errors.js';
import { isKeyName } from '../../keys/key-request.js';
import type { KeyBook } from './key-book.js';
import type { ServiceOptions } from '../service-client.js';
import { serviceClient } from '../service-client.js';

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
