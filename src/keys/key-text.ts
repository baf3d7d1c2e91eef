/** The text of a key: long, random, and known for a key of this service wherever it turns up. */
import type { System } from '../system/system.js';

const PREFIX = 'council_';

/** A new key of 256 random bits. Shown once, recorded nowhere. */
export function newKeyText({ secret }: Pick<System, 'secret'>): string {
  return PREFIX + secret();
}

/** Whether a text has the form of a key; another needs no look at the log. */
export function isKeyText(text: string): boolean {
  return /^council_[A-Za-z0-9_-]{43}$/.test(text);
}
