/**
 * Records the missing histories of test/golden/ and what readers tell of them: `npm run build && node dist/test/support/record-golden.js`. It never
 * overwrites a file, because every later version must fold the events that a version has recorded. After a change of
 * the schema version, it records the same histories again under the new number. After a change of what a reader tells,
 * delete the `.told` files that differ.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { exportLine } from '../../src/audit/export.js';
import { SCHEMA_VERSION } from '../../src/eventsourcing/hash-chain.js';
import type { RunState } from '../../src/run/state.js';
import { foldNext } from '../../src/run/stream.js';
import { answerOf, GOLDEN, readGolden, runEventsIn } from './golden.js';
import { goldenHistories } from './golden-histories.js';
import { toldOf } from './told.js';

mkdirSync(GOLDEN, { recursive: true });
for (const [name, events] of goldenHistories()) {
  const file = new URL(`v${SCHEMA_VERSION}-${name}.ndjson`, GOLDEN);
  if (existsSync(file)) continue;
  const answers: string[] = [];
  const [first] = events;
  const runId = first?.type === 'RunRequested' ? first.data.runId : '';
  let run: RunState | null = null;
  for (const event of events) {
    run = foldNext(runId, run, event);
    answers.push(answerOf(run));
  }
  writeFileSync(file, `${events.map(exportLine).join('\n')}\n`);
  writeFileSync(new URL(`v${SCHEMA_VERSION}-${name}.answers`, GOLDEN), `${answers.join('\n')}\n`);
  process.stdout.write(`recorded ${name}: ${events.length} events\n`);
}

const recorded = readGolden().map(({ name, lines }) => ({ name, events: runEventsIn(lines) }));
const byId = new Map(
  recorded.map(({ events }) => [events[0]?.type === 'RunRequested' ? events[0].data.runId : '', events]),
);
for (const { name, events } of recorded) {
  const file = new URL(`${name}.told`, GOLDEN);
  if (!existsSync(file)) writeFileSync(file, await toldOf(events, byId));
}
