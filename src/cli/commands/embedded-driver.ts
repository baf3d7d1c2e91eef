/** Runs a council in this process, on the data directory, as the service does. It leaves unfinished runs there alone. */
import { hostname } from 'node:os';
import { unpricedModel } from '../../run/budget/spending.js';
import { neededBudget } from '../../run/frontier/start.js';
import type { System } from '../../system/system.js';
import { compileWithCouncils, innerCouncils } from '../../blueprint/councils.js';
import { councilOf } from '../../blueprint/record.js';
import { warningsOf } from '../../blueprint/validate.js';
import type { Config } from '../../config.js';
import { readConfig } from '../../config.js';
import { hostsIn } from '../../config-values.js';
import { withOutput } from '../../graph/output-node.js';
import { assertCouncil, assertMatter } from '../../http/matter.js';
import { fixedGraph } from '../../council/fixed-graph.js';
import { isLonger, MAX_DRAFT_BYTES } from '../../graph/limits.js';
import type { Context } from '../../app/context.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { isWriteFailed } from '../../eventlog/errors.js';
import { unpricedText } from '../../graph/models-asked.js';
import { mayDecide } from '../../run/pauses/approvals.js';
import {
  AnotherDraftSeen,
  BudgetRefused,
  NotApprover,
  PauseMoved,
  RunFinished,
  RunNotPaused,
  RunUnknown,
} from '../../run/errors.js';
import type {
  GateChoice,
  GodModeState,
  Graph,
  RunRequestedData,
  RunResult,
  StateOverride,
} from '../../generated/schemas.js';
import { godModeState, runResult } from '../../api/serializers/runs.js';
import { ANYONE } from '../../keys/caller.js';
import { canonical } from '../../eventsourcing/canonical-json.js';
import { routedModel } from '../../models/providers.js';
import type { Freezing } from '../../run/request.js';
import { frozenGraph, buildRunRequest, recordedBudget } from '../../run/request.js';
import type { RunEvent } from '../../run/events.js';
import { pauseViewOf } from '../../run/pauses/pause-view.js';
import { killProcess } from '../../system/signals.js';
import { searchProvider } from '../../websearch/provider.js';
import type { CommandProcess } from './command.js';
import type { Decision, DriverOptions, RunDriver, RunOptions } from './driver.js';
import { progressOf } from './run-progress.js';
import { named } from './run-request.js';
import { ArgumentInvalid, EXIT } from './exit-codes.js';
import { queue } from '../../system/async/queue.js';
import { countOf } from '../terminal/table.js';

/**
 * A driver on the data directory and with the settings of the service. It holds the folder until it is closed. Ends the
 * process if the log fails, because the run cannot continue then.
 *
 * @throws {ConfigInvalid | DataDirHeld | DataDirFailed}
 */
export async function embeddedDriver(
  { env, signal, exit }: CommandProcess,
  { system, notify, warn }: DriverOptions,
): Promise<RunDriver> {
  // 1. The settings, the model and the folder.
  const config = readConfig(env);
  for (const warning of config.warnings) notify(`Warning: ${warning}`);
  const model = routedModel(config.providers, { ...config, system });
  const holder = { pid: process.pid, hostname: hostname(), startedAt: system.now() };
  const dataDir = openDataDirectory(config.dataDir, holder);
  const place = config.eventStore === null ? dataDir.path : hostsIn(config.eventStore.url);

  // 2. The context. It waits for an unreachable log. No run has started, so Ctrl-C ends the process.
  const quit = (): void => exit(EXIT.failed);
  signal.addEventListener('abort', quit);
  const onFault = (fields: object, message: string): void => {
    const outage = 'reason' in fields ? ` (${place}: ${String(fields.reason)})` : '';
    notify(`${message}${'err' in fields ? `: ${String(fields.err)}` : outage}`);
  };
  const onLogBroken = (error: unknown): void => {
    notify(`The event log failed: ${String(error)}`);
    if (isWriteFailed(error)) killProcess();
    quit();
  };
  const logger = { info: () => undefined, error: onFault };
  const webSearch = searchProvider(config.webSearch);
  // Loaded after the settings are read, so that a wrong one is refused at once.
  const { openContext } = await import('../../app/context.js');
  const context = await openContext(config, { dataDir, model, webSearch, system, logger, onLogBroken });

  // 3. The unfinished runs, which stay for the service. On a shared log, one may belong to a running instance.
  if (config.cluster === null) reportUnfinished((await context.recovery.unfinished()).length, notify);
  else context.recovery.beat();
  signal.removeEventListener('abort', quit);

  const { uuid, sha256 } = system;
  const cancelled = new AbortController();
  return {
    place: `here, on the ${model.provider} model`,
    async start(request) {
      if (request.blueprint !== null) warn(warningsOf(await context.blueprints.issuesOf(request.blueprint)));
      await assertUsable(context, request, config);
      return await start(
        context,
        await requestOf(request, config, { uuid, sha256, ...context, fullName: context.model.fullName }),
      );
    },
    follow: (runId) => progressOf(eventsOf(context, runId, cancelled.signal)),
    pause: (runId) => pause(context, runId),
    decide: (runId, seq, decision) => decide(context, runId, { seq, decision, sha256 }),
    cancel: (runId) => cancel(context, runId).finally(() => cancelled.abort()),
    result: (runId) => result(context, runId),
    async close() {
      await context.stop();
      dataDir.release();
    },
  };
}

/** Refuses what the service refuses of a start. @throws {ArgumentInvalid} */
async function assertUsable(
  { documents, blueprints, schemaChecker }: Context,
  { matter, blueprint }: RunOptions,
  { maxMaterialBytes }: Config,
): Promise<void> {
  const check = {
    documents,
    blueprints,
    schemaChecker,
    maxMaterialBytes,
    withinDeadline: <T>(work: Promise<T>) => work,
  };
  const refused = (subject: string) => (error: unknown) => {
    throw named(subject, error);
  };
  await assertMatter(check, matter, ['body']).catch(refused('the options'));
  if (blueprint !== null) await assertCouncil(check, blueprint, { id: blueprint.id }).catch(refused('the blueprint'));
}

/** @throws {ArgumentInvalid} a model without a price has a budget in US dollars */
async function start({ registry }: Context, request: RunRequestedData): Promise<string> {
  const { budget, graph } = request;
  const model = (budget?.usd ?? null) === null ? null : unpricedModel(graph, registry.decisionContext());
  if (model === null) return (await registry.start(request)).runId;
  throw new ArgumentInvalid({ subject: 'the budget', reason: unpricedText(model) });
}

function reportUnfinished(count: number, notify: DriverOptions['notify']): void {
  if (count > 0) notify(`DATA_DIR holds ${countOf(count, 'unfinished run')}. Continue with \`council serve\``);
}

async function requestOf(
  { topic, isGodMode, blueprint, budget: own, matter }: RunOptions,
  config: Config,
  { uuid, blueprints, ...freezing }: Pick<System, 'uuid'> & Freezing & Pick<Context, 'blueprints'>,
): Promise<RunRequestedData> {
  const defaults = { timeoutMs: config.modelTimeoutMs, maxAttempts: config.modelMaxAttempts };
  const saved = blueprint === null ? null : { ...councilOf(blueprint), id: blueprint.id ?? uuid() };
  const find = (id: string) => blueprints.find(id);
  const council: Graph =
    saved === null
      ? fixedGraph(defaults)
      : compileWithCouncils(saved, await innerCouncils(saved, find), defaults).graph;
  const graph = withOutput(council, matter.output_schema ?? saved?.output_schema);
  const budget = own ?? saved?.budget;
  return buildRunRequest({
    runId: uuid(),
    ...(budget !== undefined && { budget: recordedBudget(budget) }),
    inputTopic: topic,
    material: matter.material,
    documents: matter.documents ?? saved?.documents,
    godMode: isGodMode,
    blueprint: saved === null ? null : { id: saved.id, name: saved.name },
    ...frozenGraph(graph, freezing),
    keyHash: null,
    actor: null,
    bodyHash: freezing.sha256(canonical({ input_topic: topic, god_mode: isGodMode, ...matter })),
  });
}

/** The events of a run as they are recorded, until its end or the cancellation. */
async function* eventsOf({ feed }: Context, runId: string, cancelled: AbortSignal): AsyncGenerator<RunEvent> {
  const watching = new AbortController();
  const events = queue<RunEvent>();
  const end = (): void => events.end();
  cancelled.addEventListener('abort', end);
  const following = feed.follow(runId, { from: 0, onEvent: (event) => events.put(event), signal: watching.signal });
  // An error is thrown after the events before it.
  following.then(end, end);
  try {
    for (let event = await events.next(); event !== null; event = await events.next()) yield event;
    if (!cancelled.aborted) await following;
  } finally {
    cancelled.removeEventListener('abort', end);
    watching.abort();
  }
}

async function pause({ queries, registry }: Context, runId: string): Promise<GodModeState | null> {
  const run = await queries.state(runId);
  const pauseView = run === null ? null : pauseViewOf(run);
  if (pauseView === null || pauseView.pause === null) return null;
  const { run: shown } = pauseView;
  return godModeState(pauseView, {
    mayDecide: mayDecide(shown, ANYONE),
    needed: neededBudget(shown, registry.decisionContext()),
  });
}

/** Has no effect on a run that has ended. */
async function cancel({ registry }: Context, runId: string): Promise<void> {
  try {
    await registry.cancel(runId);
  } catch (error) {
    if (!(error instanceof RunFinished)) throw error;
  }
}

/** The result as a poll shows it. @throws {RunUnknown} */
async function result({ queries, registry }: Context, runId: string): Promise<RunResult> {
  const run = await queries.find(runId);
  if (run === null) throw new RunUnknown({ runId });
  const state = run.pauseReason === 'budget' ? await queries.state(runId) : null;
  return runResult(run, state && neededBudget(state, registry.decisionContext()));
}

/** Errors of a refused decision: the pause is still open, or another has replaced it. */
const REFUSALS = [RunNotPaused, PauseMoved, AnotherDraftSeen, NotApprover, BudgetRefused];

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface DecideOptions {
  readonly seq: number;
  readonly decision: Decision;
  readonly sha256: System['sha256'];
}

async function decide(
  { registry }: Context,
  runId: string,
  { seq, decision, sha256 }: DecideOptions,
): Promise<string | null> {
  if (decision.action === 'modify' && draftsIn(decision.override).some((text) => isLonger(text, MAX_DRAFT_BYTES))) {
    return `The draft is too long: at most ${MAX_DRAFT_BYTES} bytes are accepted`;
  }
  const choice: GateChoice =
    decision.action === 'modify'
      ? { action: 'modify', modifiedState: decision.override }
      : { action: decision.action, modifiedState: null };
  const budget = decision.action === 'approve' ? decision.budget : undefined;
  const { review } = decision;
  const bodyHash = sha256(canonical({ ...choice, ...(budget !== undefined && { budget }) }));
  try {
    await registry.decidePause(runId, {
      caller: ANYONE,
      comment: decision.comment ?? null,
      keyHash: null,
      bodyHash,
      expectedSeq: seq,
      budget,
      review: review && { draftSha256: review.draft_sha256 ?? null, openedAt: review.opened_at },
      choice,
    });
    return null;
  } catch (error) {
    if (REFUSALS.some((refusal) => error instanceof refusal)) return messageOf(error);
    throw error;
  }
}

function draftsIn({ current_draft: draft, branches = [] }: StateOverride): readonly string[] {
  return [draft, ...branches.map((each) => each.current_draft)].filter((text) => typeof text === 'string');
}
