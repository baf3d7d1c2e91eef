/** The override of a run's state in a request: its size and its rules. */
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { codePoints, isLonger, MAX_DRAFT_BYTES, MAX_FEEDBACK_BYTES, MAX_FEEDBACK_CHARS } from '../graph/limits.js';
import type { FieldError, StateOverride } from '../generated/schemas.js';
import { OverrideRefused } from '../run/pauses/override.js';
import { brokenRules, RequestRefused } from '../api/problems.js';
import { validated } from '../api/validation.js';

/** Largest modified_state, in bytes of its JSON text. Larger ones might not fit one append. */
const MAX_OVERRIDE_BYTES = 256 * 1024;

/** Turns the refusal of an override into a 422. The pause stays as it is. */
export function refuseOverride(error: unknown, at: readonly string[]): never {
  if (!(error instanceof OverrideRefused)) throw error;
  const { place, kind, reason } = error.data;
  throw brokenRules([{ loc: [...at, ...place], msg: reason, type: kind }]);
}

/** @throws {RequestRefused} 413 */
export function assertFits(override: object | null | undefined): void {
  if (Buffer.byteLength(JSON.stringify(override ?? null)) <= MAX_OVERRIDE_BYTES) return;
  throw new RequestRefused(`modified_state is too large: the limit is ${MAX_OVERRIDE_BYTES} bytes of JSON`, {
    status: 413,
  });
}

/** A validated override of the state. @throws {RequestRefused} 422 */
export function overrideOf(
  sent: object,
  { isOverride, at }: { readonly isOverride: ValidateFunction<StateOverride>; readonly at: readonly string[] },
): StateOverride {
  const override = validated(isOverride, sent, at);
  const tooLong = tooLongIn(override, at);
  if (tooLong.length > 0) throw brokenRules(tooLong);
  return override;
}

/** Texts longer than a node may write. */
function tooLongIn(
  { current_draft: draft, feedback_history: feedback = [], branches = [] }: StateOverride,
  at: readonly string[],
): readonly FieldError[] {
  const texts = [
    { path: ['current_draft'], text: draft ?? '', limit: MAX_DRAFT_BYTES },
    ...branches.map(({ current_draft: own }, index) => {
      return { path: ['branches', index, 'current_draft'], text: own ?? '', limit: MAX_DRAFT_BYTES };
    }),
    ...feedback.flatMap((text, index) =>
      codePoints(text) > MAX_FEEDBACK_CHARS
        ? [{ path: ['feedback_history', index], text, limit: MAX_FEEDBACK_BYTES }]
        : [],
    ),
  ];
  return texts
    .filter(({ text, limit }) => isLonger(text, limit))
    .map(({ path, limit }) => ({
      loc: [...at, ...path],
      msg: `String should have at most ${limit} bytes as JSON`,
      type: 'string_too_long',
    }));
}
