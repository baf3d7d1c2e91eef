/**
 * Records the missing histories of test/golden/: `npm run build && node dist/test/support/record-golden.js`. It never
 * overwrites a file, because every later version must fold the events that a version has recorded. After a change of
 * the schema version, it records the same histories again under the new number.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { exportLine } from '../../src/audit/export.js';
import { SCHEMA_VERSION } from '../../src/eventsourcing/hash-chain.js';
import type { RunState } from '../../src/run/state.js';
import { foldNext } from '../../src/run/stream.js';
import { answerOf, GOLDEN } from './golden.js';
import { goldenHistories } from './golden-histories.js';

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
