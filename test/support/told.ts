/** What each reader of a record tells of a run, as text: the golden files of these outputs end in `.told`. */
import { deliberationOf } from '../../src/audit/deliberation.js';
import { genealogyOf } from '../../src/audit/genealogy.js';
import { deliberationText } from '../../src/cli/terminal/deliberation-text.js';
import { eventLines } from '../../src/cli/terminal/event-line.js';
import { eventText } from '../../src/console/record/event-text.js';
import { traceAt } from '../../src/console/record/executions.js';
import { namesIn } from '../../src/console/record/labels.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { progressLine } from '../../src/openai-api/progress.js';
import type { RunEvent } from '../../src/run/events.js';
import { upcast } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { foldNext } from '../../src/run/stream.js';
import { nodeSystem } from '../../src/system/system.js';
import { traceIn } from '../../src/telemetry/spans.js';
import { recordOf } from './console-records.js';

const { sha256 } = nodeSystem();
const plain = (_: string, text: string): string => text;

/**
 * For each event its line in the terminal, its sentence in the console and its progress for clients of models; then the
 * deliberation, the genealogy, the spans and the executions at the end.
 *
 * @param others the events of other runs by id, of which some may be parents
 */
export async function toldOf(
  events: readonly RunEvent[],
  others: ReadonlyMap<string, readonly RunEvent[]>,
): Promise<string> {
  const [first] = events;
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  const { runId, graph } = first.data;
  const lineOf = eventLines(plain, null);
  const names = { ...namesIn(graph), letter: (step: number, letter: string) => `${letter} at ${step}` };
  const told: string[] = [];
  let run: RunState | null = null;
  for (const event of events) {
    run = foldNext(runId, run, upcast(event));
    told.push(lineOf(event), `  ${eventText(event, names)}`, `  ${progressLine(event, run) ?? '-'}`);
  }
  const deliberation = await deliberationOf(runId, (id, fold, max) =>
    fold(each((id === runId ? events : (others.get(id) ?? [])).slice(0, max))),
  );
  if (deliberation === null) throw new Error('There are no events');
  const genealogy = await genealogyOf(runId, each(events), { sha256, canonical });
  const spans = (await traceIn(runId, each(events), sha256)) ?? [];
  const trace = traceAt(recordOf(events), events.length - 1, events.at(-1)?.at ?? '');
  return [
    ...[...told, '', deliberationText(deliberation, events, plain), listed({ ...deliberation })],
    ...[listed({ ...genealogy }), listed({ spans }), listed({ ...trace })],
  ].join('\n');
}

async function* each(events: readonly RunEvent[]): AsyncGenerator<RunEvent> {
  yield* events;
}

/** Each field, with a line for each entry of a list. */
function listed(fields: object): string {
  const lines = Object.entries(fields).flatMap(([name, value]: [string, unknown]) => {
    return Array.isArray(value)
      ? [`${name}:`, ...value.map((entry) => `  ${json(entry)}`)]
      : [`${name}: ${json(value)}`];
  });
  return `${lines.join('\n')}\n`;
}

/** JSON with sorted keys. */
function json(value: unknown): string {
  return canonical(JSON.parse(JSON.stringify(value ?? null)));
}
