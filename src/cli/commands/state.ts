/** `council state`: shows a run after one of its events. */
import type { CommandProcess } from './command.js';
import { JSON_OPTION, PLACES, RECORD_OPTIONS, onRecord, runsIn, seqIn, show } from './record-command.js';

const USAGE = `Usage: council state RUN [--at N] [--json] [--url URL]

Shows the state of a run after event N, or after its last event.

  --at N       number of the event, from 0
  --json       print the state as one JSON object
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION, at: { type: 'string' } } as const;

export function state(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    const at = seqIn('at', values.at);
    const found = await deps.reading((records) => records.state(run, at));
    const { stateText } = await import('../terminal/state-diff.js');
    return await show(values.json === true ? found : stateText(found, deps.style), deps);
  });
}
