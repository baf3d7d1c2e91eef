/** The headers of Standard Webhooks, version 1. */

/** The HMAC-SHA256 of a text's UTF-8 under a key, in base64. */
export type HmacSha256 = (key: Uint8Array, text: string) => string;

/** The prefix of every secret. */
const SECRET_PREFIX = 'whsec_';

/** A secret as receivers write it. @param random 32 bytes in base64url */
export function secretOf(random: string): string {
  return SECRET_PREFIX + Buffer.from(random, 'base64url').toString('base64');
}

export interface SignedMessage {
  /** The same on every attempt. */
  readonly id: string;
  /** Time of the attempt, ISO 8601. */
  readonly at: string;
  readonly body: string;
  /** Each adds a signature. */
  readonly secrets: readonly string[];
}

/** `webhook-id`, `webhook-timestamp` and `webhook-signature`. */
export function signedHeaders(
  { id, at, body, secrets }: SignedMessage,
  hmac: HmacSha256,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(Date.parse(at) / 1000));
  const keys = secrets.map((secret) => Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64'));
  const signatures = keys.map((key) => `v1,${hmac(key, `${id}.${timestamp}.${body}`)}`);
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
