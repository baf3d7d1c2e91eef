/** A fake provider for panels, ranks, judges and juries, and the service that asks it as `openai`. */
import { readConfig } from '../../src/config.js';
import type { RunEventsPage, RunFacts } from '../../src/generated/schemas.js';
import { routedModel } from '../../src/models/providers.js';
import { nodeSystem } from '../../src/system/system.js';
import type { FakeOpenAi, OpenAiRequest } from './fake-openai.js';
import { fakeOpenAi, says, saysInPieces } from './fake-openai.js';
import type { Call, Reply } from './fake-server.js';
import type { RestClient } from './rest-client.js';
import { restClient } from './rest-client.js';
import type { RunningService } from './running-service.js';
import { startService } from './running-service.js';

/** What a call asks for. */
export type Asked = 'draft' | 'score' | 'ranking' | 'analysis';

export interface DeliberatingService {
  readonly server: FakeOpenAi;
  readonly service: RunningService;
  readonly rest: RestClient;
  /** Starts a run of a new council. */
  start(council: DeliberatingCouncil, godMode?: boolean): Promise<string>;
  events(runId: string): Promise<RunEventsPage['events']>;
  stop(): Promise<void>;
}

/** A body's nodes and edges, and the topic of the run. */
export interface DeliberatingCouncil {
  readonly nodes: readonly object[];
  readonly edges: readonly object[];
  /** Default: Oaks. */
  readonly topic?: string;
}

/** Replies to a call, or null for the usual reply. */
export type DeliberatingScript = (asked: Asked, call: Call<OpenAiRequest>) => Reply | null;

export async function deliberatingService(script: DeliberatingScript = () => null): Promise<DeliberatingService> {
  const server = await fakeOpenAi((call) => {
    const asked = askedIn(call.body);
    return script(asked, call) ?? saysTo(call, USUAL[asked](call.body));
  });
  const config = readConfig({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: server.url, OPENAI_MODEL: 'plain' });
  const model = routedModel(config.providers, { ...config, system: nodeSystem() });
  const service = await startService({ model, modelOutageMs: 0 });
  const rest = restClient(service.url);
  let councils = 0;
  return {
    server,
    service,
    rest,
    async start({ topic = 'Oaks', ...council }, godMode = false) {
      const id = `council-${(councils += 1)}`;
      rest.read(await rest.post('/api/councils/', { id, name: id, ...council }), 201, 'blueprint.json');
      const body = { input_topic: topic, god_mode: godMode };
      return rest.read(await rest.post(`/api/councils/${id}/run`, body), 202, 'run-start.json').run_id;
    },
    events: async (runId) =>
      rest.read(await rest.get(`/api/runs/${runId}/events?limit=1000`), 200, 'run-events-page.json').events,
    async stop() {
      await service.stop();
      await server.stop();
    },
  };
}

export function dataOf<T extends keyof RunFacts>(events: RunEventsPage['events'], type: T): readonly RunFacts[T][] {
  return events.filter((event) => event.type === type).map(({ data }) => data as RunFacts[T]);
}

/** A whole answer, in pieces if the call wants them. */
export function saysTo({ body }: Call<OpenAiRequest>, text: string): Reply {
  return body.stream === true ? saysInPieces(text.split(/(?= )/)) : says(text);
}

/** The text of all messages of a call. */
export function textOf({ messages }: OpenAiRequest): string {
  return messages.map(({ content }) => content ?? '').join('\n');
}

export function askedIn(body: OpenAiRequest): Asked {
  const text = textOf(body);
  if (text.includes('{"ranking": [string]')) return 'ranking';
  if (text.includes('{"consensus": [string]')) return 'analysis';
  return text.includes('"score" is a number') ? 'score' : 'draft';
}

/** The letters of the responses in a prompt. */
export function lettersIn(body: OpenAiRequest): readonly string[] {
  return [...textOf(body).matchAll(/<response letter="([A-Z])">/g)].map(([, letter = '']) => letter);
}

const USUAL: Readonly<Record<Asked, (body: OpenAiRequest) => string>> = {
  draft: ({ model }) => `Text of ${model}`,
  score: () => JSON.stringify({ score: 9, feedback: 'Good' }),
  ranking: (body) => JSON.stringify({ ranking: [...lettersIn(body)].reverse(), comment: 'The last is best' }),
  analysis: () =>
    JSON.stringify({
      consensus: ['Oaks are trees'],
      contradictions: [{ topic: 'Age', stances: [{ response: 'A', stance: 'old' }] }],
      partial_coverage: [{ responses: ['A', 'B'], point: 'Response A and Response B name acorns' }],
      unique_insights: [{ response: 'B', insight: 'Jays plant them' }],
      blind_spots: ['Their roots'],
    }),
};
