/** The words by which the offline author recognises what the offline critic asks for. */
import type { Part } from './parts.js';

/** The critic's request for a part. Must match verbatim: the offline writer searches the feedback for this text. */
export function requestFor({ name }: Part): string {
  return `Add ${name}.`;
}

/** First words of every critique. Must match verbatim: the offline writer recognises the offline critic by this text. */
export const CRITIC = 'Offline critic, by fixed rules:';
