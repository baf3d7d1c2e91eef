/** One HTTP exchange with a search provider whose address the operator has set. */
import { BodyTooLarge, boundedText } from '../bounded-body.js';

/** What came of it; `fault` is one line without anything the provider said. */
export type JsonAnswer =
  { readonly isRead: true; readonly body: unknown } | { readonly isRead: false; readonly fault: string };

/**
 * Sends a request and reads a JSON answer of at most 2 MiB. Redirects are not followed: the key would go with them, and
 * what a provider may name is not what the operator has set.
 *
 * @throws only when the signal aborts
 */
export async function askJson(url: string, init: RequestInit, signal: AbortSignal): Promise<JsonAnswer> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal });
    if (!response.ok) {
      await response.body?.cancel();
      return { isRead: false, fault: faultOfStatus(response.status) };
    }
    return { isRead: true, body: JSON.parse(await boundedText(response, MAX_BODY_BYTES)) as unknown };
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof BodyTooLarge) return { isRead: false, fault: 'its answer is too large' };
    if (error instanceof SyntaxError) return { isRead: false, fault: 'its answer is no JSON' };
    return { isRead: false, fault: 'it could not be reached' };
  }
}

function faultOfStatus(status: number): string {
  if (status === 401 || status === 403) return `it refused the request (${status}), which the operator can mend`;
  if (status === 429) return `it has no room now (${status})`;
  return status >= 300 && status < 400 ? `it answered with a redirect (${status})` : `it answered ${status}`;
}

const MAX_BODY_BYTES = 2 * 1024 * 1024;
