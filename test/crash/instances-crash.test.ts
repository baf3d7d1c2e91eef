import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeSystem } from '../../src/system/system.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { wait } from '../../src/system/async/deadline.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import type { Child } from '../support/child.js';
import { startChild } from '../support/child.js';
import { expectOneOwner } from '../support/owner-check.js';
import { checkRecord, factsOf } from '../support/record-of.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260104);
const REAL_URL = process.env['EVENTSTORE_URL'];
/**
 * The command that runs the real server in the foreground, words separated by spaces. Without it the test does not kill
 * the server.
 */
const REAL_COMMAND = process.env['EVENTSTORE_COMMAND']?.split(' ');
const FAKE = fileURLToPath(new URL('../support/fake-event-store-process.js', import.meta.url));

const INSTANCES = 3;
const HEARTBEAT_MS = 200;
const SUSPECT_AFTER_MS = 1_500;
/** A soak has more runs, so that many meet each fault. */
const MODEL_MS = IS_SOAK ? 25 : 200;
/** Time between two polls of a client in milliseconds. */
const POLL_MS = IS_SOAK ? 30 : 300;
/** Shortest time between two faults in milliseconds; the longest is twice that. */
const CALM_MS = IS_SOAK ? 500 : 250;
const FAULTS = IS_SOAK ? 40 : 2;
const CLIENTS = IS_SOAK ? 6 : 2;
/** Runs that must end before the test ends: of the fixed graph, and in God Mode. */
const [PLAIN, DECIDED] = IS_SOAK ? [200, 20] : [3, 2];
/** Longest wait of a client for an answer before it asks another instance, in milliseconds. */
const PATIENCE_MS = 4_000;
const COUNCILS = '/api/councils/';
const BLUEPRINT = {
  id: 'line',
  name: 'Line',
  nodes: [{ id: 'one' }, { id: 'two' }],
  edges: [{ source: 'one', target: 'two' }],
};

const delay = (ms: number): Promise<void> => wait(nodeSystem(), ms, new AbortController().signal);

interface LogServer {
  readonly url: string;
  /** SIGKILL and a new start on the same file and port. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** A data directory and the instance that uses it. */
interface Seat {
  readonly dataDir: string;
  service: ServiceProcess;
}

describe(`Three processes on one log (SEED=${SEED}${REAL_URL === undefined ? '' : ', a real server'})`, () => {
  it('end every run, and each step and pause once, while instances and log are killed and frozen', async () => {
    const random = seededRandom(SEED);
    const dir = tempDir();
    const server = await logServer(join(dir.path, 'server.sqlite'));
    const prefix = `t${randomUUID().replaceAll('-', '')}`;
    const environment = {
      EVENTSTORE_URL: server.url,
      EVENTSTORE_PREFIX: prefix,
      HEARTBEAT_MS: String(HEARTBEAT_MS),
      SUSPECT_AFTER_MS: String(SUSPECT_AFTER_MS),
      OFFLINE_LATENCY_MS: String(MODEL_MS),
      LOG_LEVEL: 'error',
    };
    const open = (dataDir: string): Promise<ServiceProcess> => startServiceProcess(dataDir, { environment });
    const seats = await Promise.all(
      Array.from({ length: INSTANCES }, async (_, index): Promise<Seat> => {
        const dataDir = join(dir.path, String(index));
        return { dataDir, service: await open(dataDir) };
      }),
    );
    const crowd = new Crowd(seats, random);
    await crowd.saveBlueprint();
    const clients = Promise.all(
      Array.from({ length: CLIENTS }, (_, index) => (index % 3 === 0 ? crowd.decide() : crowd.start())),
    );

    for (let faults = 0; faults < FAULTS; faults += 1) {
      await delay(CALM_MS * (1 + random()));
      const seat = seats[Math.floor(random() * seats.length)];
      // Each kind of fault once, then random ones.
      const mood = [0.1, 0.3, 0.6, 0.9][faults] ?? random();
      if (seat === undefined || mood < 0.2) {
        await server.crash();
      } else if (mood < 0.45) {
        seat.service.child.kill('SIGSTOP');
        await delay(SUSPECT_AFTER_MS * (0.5 + random()));
        seat.service.child.kill('SIGCONT');
      } else if (mood < 0.7) {
        await seat.service.stop();
        seat.service = await open(seat.dataDir);
      } else {
        seat.service.child.kill('SIGKILL');
        seat.service = await open(seat.dataDir);
      }
    }
    await untilTrue(() => crowd.plain.length >= PLAIN && crowd.decided.size >= DECIDED);
    crowd.close();
    await clients;

    const log = openEventStoreLog({ url: server.url, prefix, system: nodeSystem() });
    for (const runId of crowd.plain) await expectWhole(log, runId, 'RunCompleted');
    for (const [runId, accepted] of crowd.decided) await expectDecidedOnce(log, runId, accepted);
    process.stderr.write(
      `      ${crowd.plain.length} plain runs, ${crowd.decided.size} in God Mode, ${crowd.refused} requests refused or lost\n`,
    );
    await log.close();
    await Promise.all(seats.map(({ service }) => service.stop()));
    await server.stop();
    dir.remove();
  });
});

/** Clients that send a request to any instance and, without an answer, to another one with the same key. */
class Crowd {
  /** Runs of the fixed graph whose start returned 202 and whose end a client has seen. */
  readonly plain: string[] = [];
  /** Runs in God Mode with the pauses whose decision was answered with 200. */
  readonly decided = new Map<string, number[]>();
  refused = 0;
  readonly #seats: readonly Seat[];
  readonly #random: () => number;
  #isOpen = true;

  constructor(seats: readonly Seat[], random: () => number) {
    this.#seats = seats;
    this.#random = random;
  }

  close(): void {
    this.#isOpen = false;
  }

  async saveBlueprint(): Promise<void> {
    await this.#ask((rest) => rest.post(COUNCILS, BLUEPRINT), [201, 409]);
  }

  /** Starts runs of the fixed graph, one after the other, and waits for the end of each. */
  async start(): Promise<void> {
    while (this.#isOpen) {
      const runId = await this.#begin('/api/councils/run', { input_topic: 'The sea' });
      await this.#until(runId, 'completed');
      this.plain.push(runId);
    }
  }

  /** Starts runs in God Mode and approves each pause three times at once, at any instances. */
  async decide(): Promise<void> {
    while (this.#isOpen) {
      const runId = await this.#begin(`${COUNCILS}line/run`, { input_topic: 'The sea', god_mode: true });
      const accepted: number[] = [];
      for (let last = -1; ;) {
        const run = await this.#poll(runId);
        if (run.status === 'completed') break;
        expect(run.status, JSON.stringify(run)).not.to.equal('failed');
        const seq = run.status === 'paused' ? await this.#seqOf(runId) : null;
        if (seq === null || seq === last) continue;
        const body = { action: 'approve', expected_seq: seq };
        const answers = await Promise.all(
          [1, 2, 3].map(() => this.#try((rest) => rest.post(`/api/councils/run/${runId}/approve`, body))),
        );
        accepted.push(...answers.filter((reply) => reply?.status === 200).map(() => seq));
        if (answers.some((reply) => reply !== null && reply.status < 500)) last = seq;
      }
      this.decided.set(runId, accepted);
    }
  }

  async #begin(path: string, body: object): Promise<string> {
    const headers = { 'Idempotency-Key': randomUUID() };
    const reply = await this.#ask((rest) => rest.post(path, body, headers), [202]);
    return (JSON.parse(reply) as { run_id: string }).run_id;
  }

  async #poll(runId: string): Promise<{ status: string; error: string | null }> {
    await delay(POLL_MS);
    // Never 404: every instance knows a run whose start returned 202.
    return JSON.parse(await this.#ask((rest) => rest.get(`/api/councils/run/${runId}`), [200])) as {
      status: string;
      error: string | null;
    };
  }

  async #until(runId: string, status: string): Promise<void> {
    for (;;) {
      const run = await this.#poll(runId);
      if (run.status === status) return;
      expect(run.status, JSON.stringify(run)).not.to.equal('failed');
    }
  }

  async #seqOf(runId: string): Promise<number | null> {
    const state = JSON.parse(await this.#ask((rest) => rest.get(`/api/councils/run/${runId}/state`), [200])) as {
      paused: boolean;
      seq: number;
    };
    return state.paused ? state.seq : null;
  }

  /**
   * Sends a request to one instance after the other until one answers. Repeats 503; any other unexpected status fails
   * the test.
   */
  async #ask(send: Send, wanted: readonly number[]): Promise<string> {
    for (;;) {
      const reply = await this.#try(send);
      if (reply !== null && wanted.includes(reply.status)) return reply.text;
      if (reply !== null) expect(reply.status, reply.text).to.equal(503);
      await delay(20);
    }
  }

  /** Sends a request to any instance. Returns null without a complete answer in time. */
  async #try(send: Send): Promise<Reply | null> {
    const seat = this.#seats[Math.floor(this.#random() * this.#seats.length)];
    if (seat === undefined) return null;
    const late = new AbortController();
    const answered = send(restClient(seat.service.url)).catch((error: unknown) => {
      if (error instanceof TypeError) return null;
      throw error;
    });
    const reply = await Promise.race([answered, wait(nodeSystem(), PATIENCE_MS, late.signal).then(() => null)]);
    late.abort();
    if (reply === null || reply.status >= 500) this.refused += 1;
    return reply;
  }
}

type Send = (rest: RestClient) => Promise<Reply>;

async function expectWhole(log: EventLog, runId: string, end: string): Promise<void> {
  const events = await checkRecord(log, runId);
  expect(events.at(-1)?.type, runId).to.equal(end);
  await expectOneOwner(log, runId);
}

async function expectDecidedOnce(log: EventLog, runId: string, accepted: readonly number[]): Promise<void> {
  await expectWhole(log, runId, 'RunCompleted');
  const events = await checkRecord(log, runId);
  const pauses = events.filter(({ type }) => type === 'RunPaused').map(({ seq }) => seq);
  const answers = factsOf(events, 'GateDecided').map((decided) => decided.answers);
  expect(answers, `decisions of ${runId}`).to.deep.equal(pauses);
  expect([...new Set(accepted)], `accepted decisions of ${runId}`).to.deep.equal(accepted);
  expect(answers).to.include.members([...accepted]);
}

async function logServer(file: string): Promise<LogServer> {
  if (REAL_URL !== undefined) return realServer(REAL_URL);
  let child = await listening(startChild(process.execPath, [FAKE, file]));
  const url = child.lines[0]?.replace('listening on ', '') ?? '';
  const port = new URL(url.replace('esdb:', 'http:')).port;
  return {
    url,
    async crash() {
      await child.kill();
      child = await listening(startChild(process.execPath, [FAKE, file, port]));
    },
    stop: () => child.kill(),
  };
}

function realServer(url: string): LogServer {
  const [program = '', ...rest] = REAL_COMMAND ?? [];
  // The server would read these environment variables as its own settings.
  const isOthers = ([name]: readonly [string, unknown]): boolean => !name.startsWith('EVENTSTORE_');
  const environment = Object.fromEntries(Object.entries(process.env).filter(isOthers));
  const start = (): Child | null => (program === '' ? null : startChild(program, rest, environment));
  let child = start();
  return {
    url,
    async crash() {
      await child?.kill();
      child = start();
    },
    stop: async () => child?.kill(),
  };
}

async function listening(child: Child): Promise<Child> {
  await child.waitFor((lines) => lines.some((line) => line.startsWith('listening on ')));
  return child;
}
