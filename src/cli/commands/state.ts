/** `council state`: shows a run after one of its events. */
import type { CommandProcess } from './command.js';
import { JSON_OPTION, PLACES, RECORD_OPTIONS, onRecord, runsIn, seqIn, show } from './record-command.js';

const USAGE = `Usage: council state RUN [--at N] [--json] [--url URL]

Shows the state of a run after event N, or after its last event, and what the run has cost until then.

  --at N       number of the event, from 0
  --json       print the state as one JSON object
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION, at: { type: 'string' } } as const;

export function state(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    const at = seqIn('at', values.at);
    if (values.json === true) return await show(await deps.reading((records) => records.state(run, at)), deps);
    const { stateText } = await import('../terminal/state-diff.js');
    const { runCost } = await import('../records/run-cost.js');
    const [found, cost] = await deps.reading(async (records) => {
      const state = await records.state(run, at);
      return [state, await runCost(records, run, state.seq)] as const;
    });
    return await show(stateText(found, cost, deps.style), deps);
  });
}
