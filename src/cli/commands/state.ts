/** `council state`: shows a run after one of its events. */
import { budgetOfRun, runUsage } from '../../api/serializers/runs.js';
import type { RunResult } from '../../generated/schemas.js';
import { usageOf } from '../../run/effort.js';
import type { RunCost } from '../records/run-cost.js';
import type { CommandProcess } from './command.js';
import { JSON_OPTION, PLACES, RECORD_OPTIONS, onRecord, runsIn, seqIn, show } from './record-command.js';

const USAGE = `Usage: council state RUN [--at N] [--json] [--url URL]

Shows the state of a run after event N, or after its last event, and what the run has cost until then.

  --at N       number of the event, from 0
  --json       print the state, with usage and budget as in a poll, as one JSON object
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION, at: { type: 'string' } } as const;

export function state(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    const at = seqIn('at', values.at);
    const { runCost } = await import('../records/run-cost.js');
    const [found, cost] = await deps.reading(async (records) => {
      const state = await records.state(run, at);
      return [state, await runCost(records, run, state.seq)] as const;
    });
    if (values.json === true) return await show({ ...found, ...(cost !== null && costIn(cost)) }, deps);
    const { stateText } = await import('../terminal/state-diff.js');
    return await show(stateText(found, cost, deps.style), deps);
  });
}

/** The cost of a run in the form in which a poll returns it. */
function costIn({ effort, spending }: RunCost): Pick<RunResult, 'usage' | 'budget'> {
  return {
    usage: runUsage(usageOf(effort)),
    ...(spending !== null && { budget: budgetOfRun(spending, null) }),
  };
}
