/** `council show`: shows what the members of a run's panels, ranks, judges and juries have answered. */
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { RunEvent } from '../../run/events.js';
import { assertRunEvent } from '../../run/stream.js';
import type { RunRecords } from '../records/record.js';
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
    if (values.json === true) return await show(await deps.reading((records) => records.deliberation(run)), deps);
    const { deliberationText } = await import('../terminal/deliberation-text.js');
    const [found, events] = await deps.reading(
      async (records) => [await records.deliberation(run), await eventsOf(records, run)] as const,
    );
    return await show(deliberationText(found, events, deps.style), deps);
  });
}

/** The events of a run. Those of older versions are left out: they have no panels. */
async function eventsOf(records: RunRecords, run: string): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of records.events(run)) if (isRunEvent(event)) events.push(event);
  return events;
}

function isRunEvent(event: ExportedEvent): event is ExportedEvent & RunEvent {
  try {
    assertRunEvent(event);
    return true;
  } catch {
    return false;
  }
}
