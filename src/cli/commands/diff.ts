/** `council diff`: shows what differs between two events of a run, or between two runs. */
import type { CommandProcess } from './command.js';
import { UsageFault } from './exit-codes.js';
import { JSON_OPTION, PLACES, RECORD_OPTIONS, onRecord, runsIn, seqIn, show } from './record-command.js';

const USAGE = `Usage: council diff RUN --from A [--to B] [--json] [--url URL]
       council diff RUN OTHER [--from A] [--to B] [--json] [--url URL]

Shows what changed in a run between event A and event B, or what differs between RUN after event A and OTHER after
event B. Texts are compared line by line.

  --from A     number of event A, from 0; the default with OTHER is the last event of RUN
  --to B       number of event B; the default is the last event
  --json       print the changes as one JSON object
${PLACES}`;

const OPTIONS = { ...RECORD_OPTIONS, ...JSON_OPTION, from: { type: 'string' }, to: { type: 'string' } } as const;

export function diff(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const [run, other] = runsIn(positionals, { most: 2 });
    const [from, to] = [seqIn('from', values.from), seqIn('to', values.to)];
    if (other === undefined && from === null) throw new UsageFault('--from is missing, or another run');
    const { diffText, stateDiff } = await import('../terminal/state-diff.js');
    const { withNamedEnd } = await import('../records/run-cost.js');
    return await deps
      .reading(async (records) => {
        const states = [await records.state(run, from), await records.state(other ?? run, to)] as const;
        if (values.json === true) return stateDiff(...states);
        const [before, after] = [await withNamedEnd(records, states[0]), await withNamedEnd(records, states[1])];
        return diffText(stateDiff(before, after), deps.style);
      })
      .then((shown) => show(shown, deps));
  });
}
