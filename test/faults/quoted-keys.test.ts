import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import type { RunResult } from '../../src/generated/schemas.js';
import { inScript } from '../../src/console/share/shared-run.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import { nodeSystem } from '../../src/system/system.js';
import { openChannel } from '../support/channel-client.js';
import type { Child, ChildExit } from '../support/child.js';
import { startChild } from '../support/child.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench, councilKeys } from '../support/council-command.js';
import { openEventStream } from '../support/event-stream-client.js';
import type { GeminiRequest } from '../support/fake-gemini.js';
import { refuses, says } from '../support/fake-gemini.js';
import { fakeOpenAi, refuses as openAiRefuses, says as openAiSays } from '../support/fake-openai.js';
import type { FakeServer, Reply } from '../support/fake-server.js';
import { answersStatus, endsMidBody, fakeServer, hangs, hangsMidBody } from '../support/fake-server.js';
import { resets, resetsMidBody, sends } from '../support/fake-server.js';
import { freePort } from '../support/free-port.js';
import { rejectionOf } from '../support/rejection.js';
import { isOver, restClient } from '../support/rest-client.js';
import { CERTIFICATE, PRIVATE_KEY } from '../support/test-certificate.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { pdfWith, upload } from '../support/upload-client.js';
import { soakIt } from '../support/soak.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** Invalid keys. No two are similar to each other or to any other text. */
const GEMINI = 'AIza-canary-of-gemini-51c7';
const OPENAI = 'sk-canary-of-openai-8e02';
const TAVILY = 'tvly-canary-of-tavily-d93a';
const [USER, PASSWORD] = ['admin', 'canary+of/eventstore-6b4f'];
/** The keys in all forms in which they are sent and configured. */
const CANARIES = [
  ...[GEMINI, OPENAI, TAVILY, PASSWORD, encodeURIComponent(PASSWORD)],
  Buffer.from(`${USER}:${PASSWORD}`).toString('base64'),
];

/** Failures that quote a key in every part of an answer, and failures without an answer. */
function failuresQuoting(key: string): readonly Reply[] {
  return [
    ...[400, 401, 403, 429, 500, 503].map((code) => answersStatus(code, `Not with ${key}`)),
    redirects(`/elsewhere?key=${key}`),
    sends(`<html>${key}</html>`),
    sends({ error: { code: 401, message: `No, ${key}.`, status: key } }),
    sends({ detail: `No, ${key}.` }),
    ...[hangs, hangsMidBody, resets, resetsMidBody, endsMidBody],
  ];
}

function redirects(to: string): Reply {
  return (response: ServerResponse) => response.writeHead(302, { Location: to, 'X-Said': to }).end(to);
}

onEmbeddedLog(() =>
  describe('A key that a failing server quotes', () => {
    let bench: CouncilBench;
    /** Every text that the service has sent or written. */
    let output: string[];

    beforeEach(() => {
      bench = councilBench();
      output = [];
    });
    afterEach(() => bench.clear());

    const ran = ({ stdout, stderr }: Pick<ChildExit, 'stdout' | 'stderr'>): void => void output.push(stdout, stderr);
    const expectNoCanary = (): void => {
      for (const file of readdirSync(bench.path, { recursive: true, withFileTypes: true }))
        if (file.isFile()) output.push(readFileSync(join(file.parentPath, file.name), 'latin1'));
      for (const canary of CANARIES)
        expect(output.filter((text) => text.includes(canary)).map((text) => around(text, canary))).to.deep.equal([]);
    };
    const startService = (environment: Readonly<Record<string, string>>): Child =>
      startChild(process.execPath, [MAIN], {
        PATH: process.env['PATH'],
        PORT: '0',
        DATA_DIR: bench.dataDir,
        LOG_LEVEL: 'debug',
        ...environment,
      });

    it('appears in no log line, response, event, export or file of a service on Gemini and Tavily', async () => {
      const failures = [
        ...failuresQuoting(GEMINI),
        ...[400, 401, 429, 503].map((code) => refuses(code, { message: GEMINI, details: [{ reason: GEMINI }] })),
        says('', `SAFETY ${GEMINI}`),
      ];
      const gemini: FakeServer<GeminiRequest> = await fakeServer(({ path, body }) => {
        const failing = failures[Number(/fails-(\d+):/.exec(path)?.[1] ?? -1)];
        if (failing !== undefined) return failing;
        if (path.includes('mbedContent')) return refuses(401, { message: `No, ${GEMINI}.` });
        const query = /searches-\d+/.exec(path)?.[0];
        const isAnswered = body.contents.some(({ parts }) => parts.some((part) => part.functionResponse !== undefined));
        return query === undefined || isAnswered ? says('Done.') : says([calls(query)]);
      });
      const searches = failuresQuoting(TAVILY).filter((reply) => reply !== hangs && reply !== hangsMidBody);
      const tavily = await fakeServer<{ readonly query: string }>(
        ({ body }) => searches[Number(body.query.replace('searches-', ''))] ?? resets,
      );
      const child = startService({
        GEMINI_API_KEY: GEMINI,
        GEMINI_BASE_URL: gemini.url,
        MODEL_MAX_ATTEMPTS: '1',
        MODEL_OUTAGE_MS: '200',
        TAVILY_API_KEY: TAVILY,
        TAVILY_BASE_URL: tavily.url,
        OPENAI_API_KEY: OPENAI,
      });
      try {
        await child.waitFor((lines) => lines.some((line) => line.startsWith('listening on ')));
        const url = child.lines.at(-1)?.replace('listening on ', '') ?? '';
        const rest = restClient(url);
        const runOf = async (model: string): Promise<RunResult> => {
          const node = { id: 'a', model, timeoutMs: 3_000, tools: { webSearch: true } };
          const council = { id: model, name: model, nodes: [node], edges: [] };
          rest.read(await rest.post('/api/councils/', council), 201, 'blueprint.json');
          const started = await rest.post(`/api/councils/${model}/run`, { input_topic: 'Trees' });
          const { run_id: runId } = rest.read(started, 202, 'run-start.json');
          const channel = openChannel(url, `/ws/council/${runId}?events=all`);
          const stream = openEventStream(url, `/api/runs/${runId}/stream`);
          const run = await rest.until(runId, isOver);
          await Promise.all([channel.closed, stream.over]);
          output.push(JSON.stringify([run, channel.messages, stream.events]));
          await tellAll(runId);
          return run;
        };
        const tellAll = async (runId: string): Promise<void> => {
          const of = ['', '/events', '/state', '/verify', '/genealogy', '/chart', '/prompt?step=1'];
          for (const path of of) output.push((await rest.get(`/api/runs/${runId}${path}`)).text);
          const lines = { headers: { Accept: 'application/x-ndjson' } };
          const { text } = await rest.send('GET', `/api/runs/${runId}/events`, lines);
          const events = text
            .split('\n')
            .slice(0, -1)
            .map((line): unknown => JSON.parse(line));
          output.push(text, inScript({ id: runId, sharedAt: '', events }));
        };
        const tellByCommand = async ({ run_id: runId }: RunResult): Promise<void> => {
          for (const command of ['events', 'state', 'verify', 'export'])
            ran(await bench.council([command, runId, '--url', url]));
        };
        const failed = await Promise.all(failures.map((_, index) => runOf(`fails-${index}`)));
        expect(failed.filter(({ status: is }) => is !== 'failed')).to.deep.equal([]);
        expect(failed[1]?.error).to.include('answered 401 (check GEMINI_API_KEY)');
        const done = await Promise.all(searches.map((_, index) => runOf(`searches-${index}`)));
        expect(done.filter(({ status: is }) => is !== 'completed')).to.deep.equal([]);
        expect(output.join('')).to.include('refused the request (401)');
        for (const run of [failed[1], failed.at(-1), done[1]]) if (run !== undefined) await tellByCommand(run);
        const uploaded = await upload(url, pdfWith(['Trees grow.']));
        expect(uploaded.status).to.equal(503);
        output.push(uploaded.text);
        await Promise.all([gemini.goAway(), tavily.goAway()]);
        expect((await runOf('refused')).error).to.include('refused');
        for (const path of ['/api/runs/', '/api/health/ready', '/api/councils', '/api/documents', '/api/approvals'])
          output.push((await rest.get(path)).text);
        child.signal('SIGTERM');
        ran(await child.exit);
        expect(gemini.calls.every(({ headers }) => headers['x-goog-api-key'] === GEMINI)).to.equal(true);
        expect(tavily.calls).to.have.length(searches.length);
        expectNoCanary();
      } finally {
        await child.kill();
        await Promise.all([gemini.stop(), tavily.stop()]);
      }
    });

    soakIt('appears in nothing that a command on an OpenAI-compatible server prints or records', async () => {
      const server = await fakeOpenAi([openAiRefuses(401, { message: `No, ${OPENAI}.`, code: OPENAI })]);
      const env = {
        MODEL_PROVIDER: 'openai',
        OPENAI_API_KEY: OPENAI,
        OPENAI_BASE_URL: server.url,
        OPENAI_MODEL: 'm',
        MODEL_MAX_ATTEMPTS: '1',
        MODEL_OUTAGE_MS: '0',
        MODEL_TIMEOUT_MS: '20000',
      };
      const run = async (): Promise<ChildExit> => {
        const exit = await bench.run(['Trees', '--json'], { env });
        ran(exit);
        expect(exit.code).to.equal(1);
        return exit;
      };
      try {
        expect((await run()).stdout).to.include('(check OPENAI_API_KEY)');
        const [, , forbidden = hangs, , , outage = hangs, redirected = hangs] = failuresQuoting(OPENAI);
        const filtered = openAiSays('No.', `filter-${OPENAI}`);
        for (const reply of [forbidden, outage, redirected, sends({ error: OPENAI }), filtered, resetsMidBody]) {
          server.answerBy([reply]);
          await run();
        }
        expect(server.calls.every(({ headers }) => headers.authorization === `Bearer ${OPENAI}`)).to.equal(true);
        await server.goAway();
        const { run_id: runId } = JSON.parse((await run()).stdout) as RunResult;
        for (const words of [
          ['events', runId],
          ['export', runId],
          ['verify', runId],
        ])
          ran(await bench.council(words));
        expectNoCanary();
      } finally {
        await server.stop();
      }
    });

    soakIt('appears nowhere when EventStoreDB refuses the client or cannot be reached', async () => {
      const port = await freePort();
      const authority = join(bench.path, 'ca.crt');
      writeFileSync(authority, CERTIFICATE);
      const at = (port: number): Readonly<Record<string, string>> => ({
        EVENTSTORE_URL: `esdb://${USER}:${encodeURIComponent(PASSWORD)}@localhost:${port}?tlsCAFile=${authority}`,
      });
      let refusing: RefusingEventStore | null = null;
      const child = startService(at(port));
      const list = async (): Promise<void> => {
        const listed = await councilKeys(['list'], at(port));
        expect(listed.code).not.to.equal(0);
        ran(listed);
      };
      try {
        await Promise.all([list(), child.waitFor((lines) => lines.some((line) => line.includes('waiting for it')))]);
        // Now the address reaches a server.
        refusing = await refusingEventStore(port);
        await child.waitFor((lines) => lines.some((line) => line.includes('No such user')));
        expect(refusing.heard()).to.include(PASSWORD);
        await list();
        child.signal('SIGTERM');
        ran(await child.exit);
        const output = inspect(await refusalOf(at(port)), { depth: null });
        expect(output).to.include('No such user');
        for (const canary of CANARIES) expect(output).not.to.include(canary);
        expectNoCanary();
      } finally {
        await child.kill();
        refusing?.stop();
      }
    });
  }),
);

function calls(query: string): object {
  return { functionCall: { name: 'web_search', args: { query } } };
}

/** The error of a call of the log. */
async function refusalOf({ EVENTSTORE_URL: url = '' }: Readonly<Record<string, string>>): Promise<unknown> {
  const log = openEventStoreLog({ url, system: nodeSystem() });
  try {
    return await rejectionOf(log.identity());
  } finally {
    await log.close();
  }
}

interface RefusingEventStore {
  /** The credentials that clients have sent. */
  heard(): readonly string[];
  stop(): void;
}

/** A TLS server that rejects the credentials of each call and quotes them. */
async function refusingEventStore(port: number): Promise<RefusingEventStore> {
  const heard: string[] = [];
  const server = new Server();
  server.addService(StreamsService, {
    read(call: { readonly metadata: { getMap(): Record<string, unknown> }; emit(event: string, error: object): void }) {
      const sent = String(call.metadata.getMap()['authorization']);
      const password = Buffer.from(sent.replace('Basic ', ''), 'base64').toString().replace(`${USER}:`, '');
      heard.push(password);
      call.emit('error', { code: status.UNAUTHENTICATED, details: `No such user: ${sent}, ${password}` });
    },
  });
  const pair = { cert_chain: Buffer.from(CERTIFICATE), private_key: Buffer.from(PRIVATE_KEY) };
  await new Promise<number>((resolve, reject) =>
    server.bindAsync(`localhost:${port}`, ServerCredentials.createSsl(null, [pair]), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { heard: () => heard, stop: () => server.forceShutdown() };
}

/** Places where a key was found. */
function around(text: string, canary: string): string {
  const at = text.indexOf(canary);
  return text.slice(Math.max(0, at - 200), at + canary.length + 50);
}
