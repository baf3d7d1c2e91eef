/** `council show`: shows what the members of a run's panels, ranks, judges and juries have answered. */
import type { CommandProcess } from './command.js';
import { JSON_OPTION, PLACES, RECORD_OPTIONS, onRecord, runsIn, show } from './record-command.js';

const USAGE = `Usage: council show RUN [--json] [--url URL]

Shows the deliberation of a run: the answers of its panels, the rankings, analyses and scores of their reviewers, and how
far these agree. Of a run that has not ended, it shows what is recorded so far.

  --json       print the deliberation as one JSON object
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION } as const;

export function showDeliberation(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run] = runsIn(positionals);
    const found = await deps.reading((records) => records.deliberation(run));
    const { deliberationText } = await import('../terminal/deliberation-text.js');
    return await show(values.json === true ? found : deliberationText(found, deps.style), deps);
  });
}
