/** An instance: the engine of `src/app` on one folder, started again after each end. */
import { itemsOf } from '../../src/draft/items.js';
import type { Context } from '../../src/app/context.js';
import { openContext } from '../../src/app/context.js';
import { isEndedByStop } from '../../src/app/recovery.js';
import type { ContextDeps, ContextOverrides } from '../../src/app/context-deps.js';
import type { LanguageModel } from '../../src/models/port.js';
import { chartCache } from '../../src/run/chart/machine.js';
import type { Plan } from './faults.js';
import { TOKEN_USD } from './faults.js';
import { MODELS } from './graphs.js';
import { Process } from './scheduler.js';
import type { Scheduler } from './scheduler.js';
import type { AppendFault, Line, Storage } from './simulated-log.js';
import { openLine } from './simulated-log.js';
import { openStoredViews, StoredViews } from './simulated-views.js';

export interface InstanceDeps {
  readonly plan: Plan;
  readonly scheduler: Scheduler;
  readonly storage: Storage;
  readonly model: (process: Process, instance: Instance) => LanguageModel;
  readonly tools: (
    process: Process,
    instance: Instance,
  ) => Pick<ContextDeps, 'webSearch'> & Pick<ContextOverrides, 'chunkSearch'>;
  /** Called at a fault of the service that no injected fault explains. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Called after a stop with the number of timers that are left. */
  readonly onStopped: (timers: number) => void;
}

/** Every model has the same price. */
const PRICE = { input_cost_per_token: TOKEN_USD, output_cost_per_token: TOKEN_USD };
const PRICES = Object.fromEntries(MODELS.map((model) => [model, PRICE]));

/** All histories share the compiled charts of the same few graphs. */
const charts = chartCache();

export class Instance implements Line {
  readonly index: number;
  cutUntilMs = 0;
  slowUntilMs = 0;
  deafUntilMs = 0;
  readonly isAlone: boolean;
  /** Streams of runs with a watcher at this instance. */
  readonly watched = new Set<string>();
  drops = 0;
  repeats = 0;
  appending = 0;
  /** Writes of its stored views after which it dies. */
  deathsAtRows = 0;
  /** After the repair the instance does not die any more. */
  isMended = false;
  readonly armed: AppendFault[] = [];
  process: Process | null = null;
  /** The engine while it accepts requests. */
  engine: Context | null = null;
  /** The life that is stopping: it accepts no requests, even if it was still starting. */
  #stopping: Process | null = null;
  views = new StoredViews();
  /** The engine while a life lasts, even if it accepts no requests. */
  opening: Context | null = null;
  /** By stream, how many events the log has shown to this life. */
  readonly known = new Map<string, number>();
  #lives = 0;
  readonly #predecessors: string[] = [];
  /** Text of the file of what its folder has seen of the log, or null without one. */
  #seen: string | null = null;
  readonly #deps: InstanceDeps;
  readonly #onDeath = new Set<() => void>();

  constructor(index: number, deps: InstanceDeps) {
    this.index = index;
    this.#deps = deps;
    this.isAlone = !deps.plan.isCluster;
  }

  onShown(stream: string, events: number): void {
    this.known.set(stream, Math.max(events, this.known.get(stream) ?? 0));
  }

  /** Does not count reads for a watcher or a poll: the owner of a run does not see them. */
  onRead(stream: string, events: number): void {
    if (!this.watched.has(stream)) this.onShown(stream, events);
  }

  /** Ends its subscriptions. */
  drop(): void {
    this.drops += 1;
    this.#deps.storage.wake();
  }

  takeFault(): AppendFault | null {
    return this.armed.shift() ?? null;
  }

  end(process: Process): void {
    if (this.process === process && !this.isMended) this.die();
  }

  /** Starts a life unless there is one. */
  start(): void {
    if (this.process !== null) return;
    const { plan, scheduler, onFault } = this.#deps;
    this.#lives += 1;
    const rate = plan.rates[this.index] ?? 1;
    const process = new Process(scheduler, { seed: plan.seed, life: this.index * 1_000 + this.#lives, rate });
    this.process = process;
    this.#boot(process).catch((error: unknown) => {
      const isStopped = this.#stopping === process && isEndedByStop(error);
      if (this.process === process && !isStopped) onFault('an instance cannot start', error);
    });
  }

  /** Ends a life as SIGKILL does. */
  die(): void {
    if (this.process !== null) this.process.isDead = true;
    this.process = null;
    this.engine = null;
    this.opening = null;
    this.appending = 0;
    for (const tell of this.#onDeath) tell();
    this.#onDeath.clear();
    this.known.clear();
    this.watched.clear();
  }

  /** Starts the next life on another machine: without views and without the ids of earlier instances. */
  loseFolder(): void {
    this.views = new StoredViews();
    this.#predecessors.length = 0;
    this.#seen = null;
  }

  /** Ends a life like SIGTERM; resolves when it has ended. */
  async stop(): Promise<void> {
    const { process, opening } = this;
    // A second signal ends a stopping process at once; here the first stop continues.
    if (process !== null && this.#stopping === process) return;
    this.#stopping = process;
    this.engine = null;
    await opening?.stop();
    if (this.process !== process) return;
    // Before the log has answered, there is nothing to stop: the process ends.
    if (opening !== null) this.#deps.onStopped(process?.timers ?? 0);
    this.die();
  }

  /** This life's answer to a request, or 'gone' if the process dies before. */
  ask<T>(work: (engine: Context) => Promise<T>): Promise<T | 'gone'> {
    const { engine } = this;
    if (engine === null) return Promise.resolve('gone');
    return new Promise((resolve, reject) => {
      const gone = (): void => resolve('gone');
      this.#onDeath.add(gone);
      const settled = (): void => void this.#onDeath.delete(gone);
      work(engine).then(resolve, reject).finally(settled);
    });
  }

  async #boot(process: Process): Promise<void> {
    const { plan, scheduler, storage, model, tools } = this.#deps;
    const { webSearch = null, chunkSearch } = tools(process, this);
    const engine = await openContext(
      {
        maxActiveRuns: plan.maxActiveRuns,
        maxModelCalls: plan.maxModelCalls,
        modelOutageMs: plan.modelOutageMs,
        prices: PRICES,
        proxies: { http: null, https: null, none: '' },
        cluster: plan.isCluster ? plan.pace.cluster : null,
        eventStore: { url: 'esdb://simulated', prefix: '' },
        embeddings: null,
        pdfTimeoutMs: 15_000,
      },
      {
        dataDir: this.#dataDir(),
        model: model(process, this),
        webSearch,
        system: process.system,
        logger: { info: () => undefined, error: (fields, message) => this.#logged(fields, message) },
        overrides: {
          chunkSearch,
          charts,
          drafts: { load: () => Promise.resolve(), itemsOf },
          openLog: () =>
            Promise.resolve(openLine(storage, scheduler, { line: this, process, longestMs: plan.pace.latencyMs })),
          openViews: () =>
            Promise.resolve(
              openStoredViews(this.views, scheduler, { process, onWritten: () => this.#rowsWritten(process) }),
            ),
        },
      },
    );
    this.opening = engine;
    const unfinished = await engine.recovery.unfinished();
    await engine.recovery.check(unfinished);
    engine.recovery.recover(unfinished);
    // A service that reads for a long time opens its port meanwhile, so it can be stopped before it recovers runs.
    if (this.#stopping !== process) this.engine = engine;
  }

  #rowsWritten(process: Process): void {
    if (this.deathsAtRows === 0) return;
    this.deathsAtRows -= 1;
    this.end(process);
  }

  #dataDir(): ContextDeps['dataDir'] {
    const nowhere = '/nowhere';
    return {
      path: nowhere,
      logFile: nowhere,
      viewsDir: nowhere,
      tmpDir: nowhere,
      isExposed: false,
      seenLog: {
        read: () => this.#seen,
        write: (text) => void (this.#seen = text),
        remove: () => void (this.#seen = null),
      },
      recordInstance: (instanceId) => {
        const before = [...this.#predecessors];
        this.#predecessors.push(instanceId);
        return before;
      },
      release: () => undefined,
    };
  }

  #logged(fields: object, message: string): void {
    const error: unknown = Reflect.get(fields, 'err');
    if (error === undefined || isOfLog(error)) return;
    this.#deps.onFault(message, error);
  }
}

/** Whether an error is one that any call may throw while the log is unreachable. */
export function isOfLog(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && LOG_FAULTS.has(code);
}

const LOG_FAULTS: ReadonlySet<string> = new Set([
  ...['log.unavailable', 'log.outcome-unknown', 'log.closed', 'log.dropped', 'service.stopping'],
  // The views may be behind as long as the log is unreachable.
  'views.behind',
]);
