import { RevisionConflict } from '../errors.js';

/** Takes the rejection of an append for null when another append came first; throws every other error again. */
export function nullOnConflict(error: unknown): null {
  if (error instanceof RevisionConflict) return null;
  throw error;
}
