/** Errors of calls in plain words. */
import { CouncilError, ForbiddenError, InvalidError, UnreachableError } from '../../client/errors.js';

/** What a person is told of a failed call. */
export function tellError(error: unknown): string {
  if (error instanceof UnreachableError) return 'The service does not answer. It is tried again.';
  if (error instanceof ForbiddenError) return `This key may not do that: ${error.detail}`;
  if (error instanceof InvalidError && error.errors.length > 0) {
    return error.errors.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ');
  }
  if (error instanceof CouncilError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
