/** Answers of a service, held to the schemas that describe them. */
import type { Described, SchemaName, SchemaShelf } from '../http/schema.js';
import type { Reply } from './rest.js';
import { ServiceRefused } from './rest.js';

/** The value of an answer that a schema describes. @throws {ServiceRefused} when it does not fit: no council service */
export type Reading = <N extends SchemaName>(reply: Reply, name: N) => Described<N>;

export function reading(url: string, schemas: SchemaShelf): Reading {
  return (reply, name) => {
    const validate = schemas.validator(name);
    if (validate(reply.value)) return reply.value;
    throw new ServiceRefused({ status: reply.status, detail: `${url} answers something that is no ${name}` });
  };
}
