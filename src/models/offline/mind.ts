/** The minds of the offline model, so that the members of a panel differ. */
import { elementAt } from '../../system/element.js';
import type { ModelRequest } from '../port.js';
import type { DraftPart } from './parts.js';
import { SECTIONS } from './parts.js';

/** Its name without a mind of its own. A node of that model is answered by it whatever the service is set to. */
export const OFFLINE_MODEL = 'offline-1';

/** A mind: the section it cares about, by its index. */
export interface Mind {
  readonly index: number;
  readonly section: DraftPart;
}

/** The mind of a member: by its model's name (`offline-2` follows `offline-1`), its instructions and its temperature. */
export function mindOf({ model = OFFLINE_MODEL, temperature = 0, promptInput }: ModelRequest): Mind {
  return mindAt(sumOf(model) + sumOf(promptInput.systemPrompt) + Math.round(10 * temperature));
}

/**
 * The mind of a critic: by its model's name; also by its instructions if they say that it scores "only" one thing, as those
 * of jury members do.
 */
export function criticMindOf({ model = OFFLINE_MODEL, promptInput: { systemPrompt } }: ModelRequest): Mind {
  return mindAt(sumOf(model) + (/\bonly\b/i.test(systemPrompt) ? sumOf(systemPrompt) : 0));
}

function mindAt(number: number): Mind {
  const { length } = SECTIONS;
  const index = (((Math.trunc(number) - sumOf(OFFLINE_MODEL)) % length) + length) % length;
  return { index, section: elementAt(SECTIONS, index) };
}

function sumOf(text: string): number {
  let sum = 0;
  for (const sign of text) sum += sign.codePointAt(0) ?? 0;
  return sum;
}
