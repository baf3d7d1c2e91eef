/** A council of one agent that searches uploaded documents, and the results of its runs. */
import type { RunFacts } from '../../src/generated/schemas.js';
import type { FakeProvider } from './fake-provider.js';
import { isOver, restClient } from './rest-client.js';

export const READING_COUNCIL = {
  id: 'readers',
  name: 'Readers',
  nodes: [{ id: 'reader', tools: { pdfReader: true } }],
};

type Hits = RunFacts['ToolCalled']['hits'];

/** The tool call of an agent, and its result. */
export interface Reading {
  readonly hits: Hits | undefined;
  /** Why its tool call failed, or null if it succeeded, or undefined if it made none. */
  readonly error: string | null | undefined;
  /** Its tools as recorded at its last start. */
  readonly tools: readonly string[];
  /** The prompt of its model. */
  readonly lastResult: string;
}

/** Saves the council, whose runs `read` starts. */
export async function saveReadingCouncil(url: string): Promise<void> {
  const rest = restClient(url);
  rest.read(await rest.post('/api/councils/', READING_COUNCIL), 201, 'blueprint.json');
}

/** Starts a run of the council. @returns the run's id */
export async function startReading(url: string): Promise<string> {
  const rest = restClient(url);
  const reply = await rest.post('/api/councils/readers/run', { input_topic: 'How do oaks grow?' });
  return rest.read(reply, 202, 'run-start.json').run_id;
}

/** Waits for the end of a run of the council. */
export async function readingOf(url: string, runId: string, provider: FakeProvider): Promise<Reading> {
  const rest = restClient(url);
  const run = await rest.until(runId, isOver);
  if (run.status !== 'completed') throw new Error(`Run ${runId} is ${run.status}: ${run.error}`);
  const { events } = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
  const dataOf = (type: string): unknown => events.findLast((event) => event.type === type)?.data;
  const called = dataOf('ToolCalled') as RunFacts['ToolCalled'] | undefined;
  const { tools } = dataOf('NodeStarted') as RunFacts['NodeStarted'];
  return { hits: called?.hits, error: called?.error, tools, lastResult: provider.results().at(-1) ?? '' };
}

/** Starts a run and waits for its end. */
export async function read(url: string, provider: FakeProvider): Promise<Reading> {
  return await readingOf(url, await startReading(url), provider);
}

/** Ids of the documents that hits come from, each once, sorted. */
export function documentsIn(hits: Hits | undefined): readonly string[] {
  return [...new Set((hits ?? []).flatMap((hit) => ('document' in hit ? [hit.document] : [])))].sort();
}
