/** Whether a condition of an edge can be read, by the service's own parser. */
import { ConditionInvalid, parseCondition } from '../../graph/condition.js';

/** Why not, naming the place, counted from 1; null: it can. */
export function conditionFault(text: string): string | null {
  try {
    parseCondition(text);
    return null;
  } catch (error) {
    if (!(error instanceof ConditionInvalid)) throw error;
    const { position, reason } = error.data;
    return `Cannot be read at character ${position + 1}: ${reason}`;
  }
}
