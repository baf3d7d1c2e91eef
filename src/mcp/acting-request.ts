/** The call of a tool as the request to the REST API that does the same. */
import type { IncomingMessage } from 'node:http';
import type { ActingRequest } from '../http/starts.js';

/**
 * A POST from the same client.
 *
 * @param headers in place of the client's own, of which only `X-Forwarded-For` stays
 */
export function actingRequest(
  { socket, headers: { 'x-forwarded-for': forwardedFor } }: IncomingMessage,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ActingRequest {
  const named = Object.entries(headers).map(([name, value]): [string, string[]] => [name.toLowerCase(), [value]]);
  return {
    method: 'POST',
    path,
    req: { socket, headers: { 'x-forwarded-for': forwardedFor }, headersDistinct: Object.fromEntries(named) },
    // The headers of the answer are sent before a tool is called.
    append: () => undefined,
  };
}
