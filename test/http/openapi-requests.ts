/**
 * Sends one request to each operation of the service, with the types that openapi-typescript generates from its
 * document. Only openapi-types.test.ts compiles this file, against freshly generated types. A wrong type is a compile
 * error.
 */
import createClient from 'openapi-fetch';
import type { components, paths } from '#openapi';

type StoredRunEvent = components['schemas']['StoredRunEvent'];

interface Requests {
  readonly baseUrl: string;
  /** A file to upload. */
  readonly pdf: Blob;
  /** A folder for a backup, which does not exist. */
  readonly backupTo: string;
  /** Called with the method and path of each request that succeeds. */
  readonly onSent: (operation: string) => void;
}

type Client = ReturnType<typeof createClient<paths, 'application/json'>>;

/** @throws {Error} an answer has another status than success */
export async function sendEach({ baseUrl, pdf, backupTo, onSent }: Requests): Promise<void> {
  const client = createClient<paths, 'application/json'>({ baseUrl });
  client.use({
    onResponse({ request, response, schemaPath }) {
      if (!response.ok) throw new Error(`${request.method} ${request.url} was answered ${response.status}`);
      onSent(`${request.method} ${schemaPath}`);
    },
  });
  await describeItself(client);
  await deliverByWebhook(client, baseUrl);
  const runId = await finishedRun(client);
  await readRun(client, runId);
  await keepBlueprint(client);
  await decidePause(client);
  await readLedger(client, runId);
  await callAsModel(client);
  await keepDocument(client, pdf);
  await client.POST('/api/backup', { body: { to: backupTo } });
  await client.GET('/api/backup');
  await askForTools(client);
  // The last request, because after the first key every request needs one.
  await keepKeys(client);
}

async function describeItself(client: Client): Promise<void> {
  const health: 'ok' | undefined = (await client.GET('/api/health')).data?.status;
  const readiness: 'ready' | undefined = (await client.GET('/api/health/ready')).data?.status;
  if (health !== 'ok' || readiness !== 'ready') throw new Error('The service is not ready');
  await client.GET('/api/openapi.json');
  const { data: providers } = await client.GET('/api/providers');
  if (providers?.[0]?.default !== true) throw new Error('No default provider');
  const { data: examples } = await client.GET('/api/examples');
  if (given(examples).length === 0) throw new Error('No examples');
  await client.GET('/api/asyncapi.json');
  const { data: metrics } = await client.GET('/metrics', { parseAs: 'text' });
  if (!given(metrics).includes('council_runs_started_total')) throw new Error('No metrics');
}

async function finishedRun(client: Client): Promise<string> {
  // @ts-expect-error A topic is a string.
  await client.POST('/api/councils/run', { body: { input_topic: 1 } }).catch(() => undefined);
  const { data: start } = await client.POST('/api/councils/run', {
    params: { header: { 'Idempotency-Key': 'typed' } },
    body: { input_topic: 'Trees', material: 'A tree has leaves.' },
  });
  const run_id = given(start?.run_id);
  for (;;) {
    const { data: run } = await client.GET('/api/councils/run/{run_id}', { params: { path: { run_id } } });
    const draft: string | null = given(run).final_draft;
    if (draft !== null) return run_id;
  }
}

async function readRun(client: Client, run_id: string): Promise<void> {
  const params = { path: { run_id } };
  const { data: history } = await client.GET('/api/runs', { params: { query: { limit: 10 } } });
  const mode: 'auto-pilot' | 'god-mode' | undefined = given(history)[0]?.execution_mode;
  if (mode !== 'auto-pilot') throw new Error('The run is not in the history');
  await client.GET('/api/runs/{run_id}', { params });
  const { data: page } = await client.GET('/api/runs/{run_id}/events', {
    params: { ...params, query: { limit: 1000 } },
  });
  const events = given(page).events;
  if (scores(events).length === 0) throw new Error('No score is among the events');
  const lines = await client.GET('/api/runs/{run_id}/stream', { params, parseAs: 'text' });
  const text: string = given(lines.data);
  if (!text.includes('event: RunCompleted')) throw new Error('The stream does not end');
  const feed = await client.GET('/api/feed', { params: { query: { types: 'RunCompleted' } }, parseAs: 'stream' });
  await feed.data?.cancel();
  await client.GET('/api/approvals', { params: { query: { mine: 1, limit: 10 } } });
  const inbox = await client.GET('/api/approvals/stream', { parseAs: 'stream' });
  await inbox.data?.cancel();
  await client.GET('/api/runs/{run_id}/state', { params: { ...params, query: { at: 0 } } });
  await client.GET('/api/runs/{run_id}/verify', { params });
  await client.GET('/api/runs/{run_id}/genealogy', { params: { ...params, query: { format: 'json' } } });
  await client.GET('/api/runs/{run_id}/deliberation', { params });
  await client.GET('/api/about');
  await client.GET('/api/prices');
  await client.GET('/api/estimate', { params: { query: { blueprint_id: 'x' } } });
  await client.GET('/api/runs/counts', { params: { query: { trial: '0' } } });
  await client.GET('/api/runs/export', { params: { query: { format: 'ndjson', ids: 'x' } }, parseAs: 'text' });
  await client.GET('/api/overview', { params: { query: { from: '2026-11-01', to: '2026-11-27' } } });
  await client.GET('/api/runs/{run_id}/sources', { params });
  await client.GET('/api/runs/{run_id}/next', { params });
  await client.GET('/api/runs/{run_id}/draft', { params: { ...params, query: { format: 'md' } }, parseAs: 'text' });
  await client.GET('/api/runs/{run_id}/prompt', { params: { ...params, query: { step: 1 } } });
  await client.GET('/api/runs/{run_id}/chart', { params });
  const fork = { at: 0, changes: { nodes: [{ id: 'critic_agent', temperature: 0 }] } };
  await client.POST('/api/runs/{run_id}/fork', { params: { ...params, query: { dry_run: '1' } }, body: fork });
}

/** Reads the ledger, and erases the run. */
async function readLedger(client: Client, run_id: string): Promise<void> {
  const params = { path: { run_id } };
  await client.GET('/api/runs/{run_id}/material', { params, parseAs: 'text' });
  const { data: oversight } = await client.GET('/api/oversight', { params: { query: { format: 'json' } } });
  const wait: number | undefined = given(oversight)[0]?.waited_ms;
  if (wait === undefined) throw new Error('The decision is missing');
  const proof = (): Promise<unknown> => client.GET('/api/runs/{run_id}/proof', { params, parseAs: 'text' });
  // Refused with 409 until a checkpoint covers the run.
  while (
    !(await proof().then(
      () => true,
      () => false,
    ))
  )
    await new Promise((resolve) => setTimeout(resolve, 100));
  const size: number = given((await client.GET('/api/ledger')).data).size;
  await client.GET('/ledger/checkpoint', { parseAs: 'text' });
  const path = { level: 'entries', tile: `000.p/${size}` };
  await client.GET('/ledger/tile/{level}/{tile}', { params: { path }, parseAs: 'arrayBuffer' });
  await client.DELETE('/api/runs/{run_id}', { params, body: { reason: 'A test' } });
}

/** The type of an event determines the type of its data. */
function scores(events: readonly StoredRunEvent[]): readonly number[] {
  return events.flatMap((event) => {
    // @ts-expect-error Not every event has a step.
    void event.data.step;
    if (event.type !== 'NodeCompleted') return [];
    const { output } = event.data;
    return 'score' in output ? [output.score] : [];
  });
}

async function keepBlueprint(client: Client): Promise<void> {
  const params = { path: { blueprint_id: 'pair' } };
  const { data: found } = await client.POST('/api/councils/validate', { body: { name: 'Pair', nodes: [] } });
  if (given(found).valid) throw new Error('A council of nobody is valid');
  const { data: saved } = await client.POST('/api/councils', {
    body: {
      id: 'pair',
      name: 'Pair',
      // Unknown fields of front ends are allowed.
      nodes: [
        { id: 'write', colour: 'green' },
        { id: 'judge', type: 'critic' },
      ],
      edges: [{ source: 'write', target: 'judge', type: 'linear', colour: 'red' }],
    },
  });
  const [node] = given(saved).nodes;
  const colour: unknown = node?.['colour'];
  if (colour !== 'green') throw new Error('An unknown field is lost');
  await client.GET('/api/councils', { params: { query: { limit: 1, offset: 0 } } });
  await client.GET('/api/councils/{blueprint_id}', { params });
  await client.PUT('/api/councils/{blueprint_id}', { params, body: { name: 'Couple' } });
  await client.GET('/api/councils/{blueprint_id}/chart', { params });
  await client.POST('/api/councils/try', { body: { input_topic: 'Trees', nodes: [{ id: 'write' }] } });
  const { data: versions } = await client.GET('/api/councils/{blueprint_id}/versions', { params });
  given(given(versions)[0]).version.toFixed();
}

async function decidePause(client: Client): Promise<void> {
  const council = { path: { blueprint_id: 'pair' } };
  const body = { input_topic: 'Trees', god_mode: true };
  const { data: start } = await client.POST('/api/councils/{blueprint_id}/run', { params: council, body });
  const params = { path: { run_id: given(start).run_id } };
  for (;;) {
    const { data: run } = await client.GET('/api/councils/run/{run_id}', { params });
    if (given(run).status === 'paused') break;
  }
  const { data: state } = await client.GET('/api/councils/run/{run_id}/state', { params });
  const [action]: ('approve' | 'reject' | 'modify')[] = given(state).allowed_actions;
  const decision = { action: given(action), expected_seq: given(state).seq };
  await client.POST('/api/councils/run/{run_id}/approve', { params, body: decision });
  await client.POST('/api/councils/run/{run_id}/cancel', { params, body: {} });
  await client.DELETE('/api/councils/{blueprint_id}', { params: council });
}

async function callAsModel(client: Client): Promise<void> {
  const { data: models } = await client.GET('/v1/models');
  if (given(given(models).data[0]).id !== 'council') throw new Error('The built-in council is no model');
  const { data: model } = await client.GET('/v1/models/{model}', { params: { path: { model: 'council' } } });
  const name: string = given(model).name;
  if (name === '') throw new Error('The built-in council has no name');
  const messages = [{ role: 'user', content: 'Trees' }];
  const { data: chat } = await client.POST('/v1/chat/completions', { body: { model: 'council', messages } });
  const content: string = given(given(chat).choices[0]).message.content;
  if (content === '') throw new Error('The completion is empty');
  // @ts-expect-error A model is a string.
  await client.POST('/v1/responses', { body: { model: 1, input: 'Trees' } }).catch(() => undefined);
  const { data: response } = await client.POST('/v1/responses', { body: { model: 'council', input: 'Trees' } });
  const params = { path: { response_id: given(response).id } };
  const { data: found } = await client.GET('/v1/responses/{response_id}', { params });
  if (given(found).status !== 'completed') throw new Error('The response is not completed');
  await client.POST('/v1/responses/{response_id}/cancel', { params });
}

async function keepDocument(client: Client, pdf: Blob): Promise<void> {
  await client.POST('/api/councils/upload-pdf', {
    body: { file: 'trees.pdf' },
    bodySerializer({ file }) {
      const form = new FormData();
      form.append('file', pdf, file);
      return form;
    },
  });
  const { data: documents } = await client.GET('/api/documents');
  const params = { path: { document_id: given(given(documents)[0]).id } };
  await client.GET('/api/documents/{document_id}', { params });
  await client.GET('/api/documents/{document_id}/verify', { params });
  await client.GET('/api/documents/{document_id}/chunks', { params: { ...params, query: { page: 1 } } });
  await client.GET('/api/documents/search', { params: { query: { q: 'Trees' } } });
  await client.DELETE('/api/documents/{document_id}', { params });
}

async function askForTools(client: Client): Promise<void> {
  const answer = await client.POST('/mcp', {
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
    headers: { Accept: 'application/json, text/event-stream' },
    parseAs: 'text',
  });
  if (!given(answer.data).includes('start_council')) throw new Error('The tools lack start_council');
}

async function deliverByWebhook(client: Client, baseUrl: string): Promise<void> {
  // This address answers 405 to a POST, so that a delivery waits.
  const { data: added } = await client.POST('/api/webhooks', { body: { url: `${baseUrl}/api/health` } });
  const webhook = { webhook_id: given(added).id };
  await client.POST('/api/councils/run', { body: { input_topic: 'Trees' } });
  for (;;) {
    const { data } = await client.GET('/api/webhooks/{webhook_id}/deliveries', { params: { path: webhook } });
    const [delivery] = given(data);
    if (delivery === undefined) continue;
    const path = { ...webhook, delivery_id: delivery.id };
    await client.POST('/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry', { params: { path } });
    break;
  }
  const { data: rotated } = await client.POST('/api/webhooks/{webhook_id}/rotate', { params: { path: webhook } });
  if (given(rotated).secret === given(added).secret) throw new Error('The secret is the same');
  const { data: webhooks } = await client.GET('/api/webhooks');
  const isDisabled: boolean = given(given(webhooks)[0]).disabled;
  if (isDisabled) throw new Error('The webhook is disabled');
  await client.DELETE('/api/webhooks/{webhook_id}', { params: { path: webhook } });
}

async function keepKeys(client: Client): Promise<void> {
  const { data: added } = await client.POST('/api/keys', {
    body: { name: 'first', scopes: ['admin', 'audit', 'read'], expires_in: '1d' },
  });
  const { key } = given(added);
  client.use({
    onRequest({ request }) {
      request.headers.set('Authorization', `Bearer ${key}`);
      return request;
    },
  });
  const { data: session } = await client.POST('/api/session', { body: { key } });
  const actor: string | null = given(session).actor;
  if (actor !== 'first') throw new Error('The session is not that of the key');
  await client.GET('/api/session');
  await client.DELETE('/api/session');
  const { data: issued } = await client.POST('/api/tickets');
  const ticket: string = given(issued).ticket;
  if (ticket === '') throw new Error('There is no ticket');
  const { data: keys } = await client.GET('/api/keys');
  const [known] = given(keys);
  const scopes: readonly string[] = given(known).scopes;
  if (!scopes.includes('admin')) throw new Error('The first key is no admin');
  const { data: page } = await client.GET('/api/keys/events', { params: { query: { limit: 1 } } });
  const [event] = given(page).events;
  if (event?.type !== 'KeyAdded' || event.data.name !== 'first') throw new Error('The key is not in the record');
  await client.DELETE('/api/keys/{name}', { params: { path: { name: 'first' } } });
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('An answer is missing something');
  return value;
}
