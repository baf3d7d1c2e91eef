/** What was found of a record, in the words of the terminal and as JSON. */
import { inOneLine } from '../printable.js';
import type { Finding } from './finding.js';
import type { Paint } from './paint.js';

const UNFINISHED =
  'the run has not ended in it, so that more may belong to it: compare the head with one you trust (--head HASH)';

export function findingText(finding: Finding, paint: Paint): string {
  const { isValid, runId, events, headHash, firstDifference } = finding;
  const count = `${events} ${events === 1 ? 'event bears' : 'events bear'} out`;
  const lines = [`run   ${inOneLine(runId) || 'unknown'}`, `head  ${headHash}`];
  if (firstDifference !== null) {
    const { seq, what } = firstDifference;
    const verdict = paint('red', 'not valid');
    return told([`${verdict}: event ${seq}: ${inOneLine(what)}`, `${count} before it`, ...lines]);
  }
  if (isValid === true) return told([`${paint('green', 'valid')}: ${count}`, ...lines]);
  return told([`${paint('yellow', 'cannot tell')}: ${UNFINISHED}`, count, ...lines]);
}

/** As GET /api/runs/{run_id}/verify answers; `valid` is null when nothing certain can be said. */
export function findingJson({ isValid, runId, events, headHash, firstDifference }: Finding): object {
  return { run_id: runId, valid: isValid, events, head_hash: headHash, first_difference: firstDifference };
}

function told(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
