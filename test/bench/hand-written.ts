/**
 * The yardstick: the built-in council as an engineer would write it for this one purpose. An XState actor per run, one
 * durable append per step, batched into SQLite in a worker. It has no hash chain, read models, prompts, retries,
 * recovery or limits.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ActorLogic, SnapshotFrom } from 'xstate';
import { assign, createActor, setup } from 'xstate';
import type { Contestant, CouncilModel } from './contestant.js';

export interface Row {
  readonly run: string;
  readonly seq: number;
  readonly data: string;
}

type Fact =
  | { readonly type: 'drafted'; readonly draft: string }
  | { readonly type: 'scored'; readonly score: number; readonly feedback: string };

interface Council {
  readonly topic: string;
  readonly draft: string | null;
  readonly score: number;
  readonly feedback: readonly string[];
}

/** For the compiler only. */
const TYPES: { readonly context?: Council; readonly events?: Fact } = {};

const machine = setup({
  types: TYPES,
  actions: {
    takeDraft: assign(({ context, event }) => (event.type === 'drafted' ? { draft: event.draft } : context)),
    takeScore: assign(({ context, event }) =>
      event.type === 'scored' ? { score: event.score, feedback: [...context.feedback, event.feedback] } : context,
    ),
  },
  guards: { isApproved: ({ event }) => event.type === 'scored' && event.score >= 8 },
}).createMachine({
  id: 'council',
  initial: 'master',
  context: { topic: 'The sea', draft: null, score: 0, feedback: [] },
  states: {
    master: { on: { drafted: { target: 'critic', actions: 'takeDraft' } } },
    critic: {
      on: {
        scored: [
          { guard: 'isApproved', target: 'writer', actions: 'takeScore' },
          { target: 'master', actions: 'takeScore' },
        ],
      },
    },
    writer: { on: { drafted: { target: 'done', actions: 'takeDraft' } } },
    done: { type: 'final' },
  },
});

type Snapshot = SnapshotFrom<typeof machine>;

/** An actor that takes the recorded state. */
const live: ActorLogic<Snapshot, { readonly type: 'recorded'; readonly to: Snapshot }> = {
  transition: (_, { to }) => to,
  getInitialSnapshot: () => createActor(machine).getSnapshot(),
  getPersistedSnapshot: (snapshot) => snapshot,
};

export async function openContestant({
  path,
  model,
}: {
  readonly path: string;
  readonly model: CouncilModel;
}): Promise<Contestant> {
  const log = openLog(join(path, 'hand-written.sqlite'));
  const first = createActor(machine).getSnapshot();
  const scope = inertScope();
  return {
    async run() {
      const run = randomUUID();
      const actor = createActor(live, { snapshot: first }).start();
      let seq = await log.append(run, 0, [{ type: 'requested', topic: first.context.topic }, started(first)]);
      for (let at = first; at.status === 'active'; at = actor.getSnapshot()) {
        const fact = await step(at, model);
        const to = machine.transition(at, fact, scope);
        seq = await log.append(run, seq, [fact, started(to)]);
        actor.send({ type: 'recorded', to });
      }
      return actor.getSnapshot().context.draft;
    },
    stop: () => log.close(),
  };
}

async function step({ value, context: { draft } }: Snapshot, model: CouncilModel): Promise<Fact> {
  if (value === 'critic') return { type: 'scored', ...(await model.critique(draft)) };
  return { type: 'drafted', draft: await model.draft(draft) };
}

/** The event of an entered state; `done` is the end of the run. */
function started({ value }: Snapshot): object {
  return { type: 'started', node: value };
}

function inertScope(): Parameters<typeof machine.transition>[2] {
  const self = createActor(machine);
  const nothing = (): void => undefined;
  const effects = { logger: nothing, defer: nothing, emit: nothing, stopChild: nothing, actionExecutor: nothing };
  return { self, system: self.system, id: '', sessionId: '', ...effects };
}

/** Appends that wait while a batch is written become the next batch. */
function openLog(file: string) {
  const worker = new Worker(new URL('hand-written-worker.js', import.meta.url), { workerData: file });
  let waiting: { readonly rows: readonly Row[]; readonly resolve: () => void }[] = [];
  let written: typeof waiting | null = null;
  const write = (): void => {
    written = waiting.length === 0 ? null : waiting;
    waiting = [];
    if (written !== null) worker.postMessage(written.flatMap(({ rows }) => rows));
  };
  worker.on('message', () => {
    const done = written ?? [];
    write();
    for (const { resolve } of done) resolve();
  });
  return {
    /** Returns the number of the next event. */
    async append(run: string, seq: number, facts: readonly object[]): Promise<number> {
      const at = new Date().toISOString();
      const rows = facts.map((fact, i) => ({ run, seq: seq + i, data: JSON.stringify({ ...fact, at }) }));
      await new Promise<void>((resolve) => {
        waiting.push({ rows, resolve });
        // All appends of this turn of the event loop go into one batch.
        if (written === null && waiting.length === 1) setImmediate(write);
      });
      return seq + facts.length;
    },
    async close(): Promise<void> {
      await worker.terminate();
    },
  };
}
