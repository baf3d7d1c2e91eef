/** What the service is spoilt by, as texts of its built files and what stands there instead. */
export interface Mutation {
  readonly name: string;
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
}

const of = (name: string, file: string, from: string, to = ''): Mutation => ({ name, edits: [{ file, from, to }] });

const ACTOR = 'run/live/actor.js';
const REGISTRY = 'run/live/registry.js';
const RETRY = 'eventsourcing/append-with-retry.js';
const TRY = 'return log.append(stream, events, expected);';
const TOOL_CALL = 'council/tools/call.js';
const ACTOR_APPEND =
  'const { isRepeated } = await ownAppends.during(append, () => appendWithRetry(log, sealed, this.#retryPolicy));';
const ACTOR_ADOPT = 'this.#moveOn(sealed.recorded, { to });';
const ACTOR_ACT = 'else this.#actAsOwner(pending.assignments);';
const PROJECTOR = 'projections/projector.js';
const VIEWS = 'projections/run-views.js';
const TAKE = 'if (isOwn ? isHeld() : owner !== null && !isSuspect(owner)) return [];';

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a run is adopted before it is appended',
    edits: [
      { file: ACTOR, from: ACTOR_ADOPT, to: '' },
      { file: ACTOR, from: ACTOR_APPEND, to: `${ACTOR_ADOPT} this.#actAsOwner(pending.assignments); ${ACTOR_APPEND}` },
      { file: ACTOR, from: ACTOR_ACT, to: '' },
      // By which a call waits for what is being appended.
      { file: ACTOR, from: '=> this.settled();', to: '=> Promise.resolve();' },
    ],
  },
  of(
    'results are not appended',
    ACTOR,
    ACTOR_APPEND,
    ACTOR_APPEND.replace('await', "facts[0].type === 'NodeCompleted' ? {} : await"),
  ),
  of(
    'a conflict counts as written',
    RETRY,
    TRY,
    `${TRY.slice(0, -1)}.catch((e) => { if (e.code === 'log.conflict') return { revision: 0, position: '' }; throw e; });`,
  ),
  of(
    'an unknown outcome counts as written',
    RETRY,
    TRY,
    `${TRY.slice(0, -1)}.catch((e) => { if (e instanceof AppendOutcomeUnknown) return { revision: 0, position: '' }; throw e; });`,
  ),
  of(
    'an unknown outcome counts as a failure',
    RETRY,
    'error instanceof AppendOutcomeUnknown || error instanceof LogUnavailable',
    'error instanceof LogUnavailable',
  ),
  of(
    'an outage of the log counts as a failure',
    RETRY,
    'error instanceof AppendOutcomeUnknown || error instanceof LogUnavailable',
    'error instanceof AppendOutcomeUnknown',
  ),
  of(
    'each try has ids of its own',
    RETRY,
    TRY,
    'return log.append(stream, events.map((e) => ({ ...e, id: e.id.slice(0, 24) + String(tries).padStart(12, e.id.slice(24)) })), expected);',
  ),
  {
    name: 'a claim acknowledged late replaces the actor at work',
    edits: [
      { file: REGISTRY, from: 'other.run.head.seq >= head.seq', to: 'false' },
      { file: REGISTRY, from: 'other?.stop();', to: '' },
    ],
  },
  of('a claim acknowledged late is acted on at once', REGISTRY, 'if (isLate) await', 'if (false) await'),
  of(
    'whoever has lost a run goes on with it',
    ACTOR,
    'if (this.run.ownership.owner === this.#deps.instanceId) this.#act',
    'if (this.run.ownership.owner !== null) this.#act',
  ),
  of('a run is taken from the living', 'run/commands/take-over.js', TAKE),
  of(
    'a run is taken although it is at work here',
    'run/commands/take-over.js',
    TAKE,
    'if (!isOwn && owner !== null && !isSuspect(owner)) return [];',
  ),
  of(
    'the dead are never suspected',
    'cluster/failure-detector.js',
    'return lastMs !== undefined && nowMs - lastMs > suspectAfterMs;',
    'return false;',
  ),
  of('whoever hears nothing suspects', 'cluster/failure-detector.js', 'if (this.#isDeaf) return false;'),
  of(
    'silence while deaf counts',
    'cluster/failure-detector.js',
    'for (const instanceId of this.#heardMs.keys()) this.#heardMs.set(instanceId, nowMs);',
  ),
  of('orphans are not looked for', 'cluster/cluster.js', 'this.#orphanRecovery.check();'),
  of(
    'what happens before listening is missed',
    'app/engine.js',
    'cluster?.listen();\n      return (await history.unfinished()).filter(({ runId }) => !corruptRuns.has(runId));',
    'const runs = await history.unfinished(); cluster?.listen(); return runs.filter(({ runId }) => !corruptRuns.has(runId));',
  ),
  of('an instance alone takes nothing up', 'app/engine.js', 'registry.recover(runs);'),
  of(
    'a slot is not freed when a run ends',
    REGISTRY,
    'this.#options.onLeft(run);\n    this.#admission.leave();',
    'this.#options.onLeft(run);',
  ),
  of('a slot of a model is not freed', 'models/bounded.js', 'semaphore.leave(name);'),
  of('an offer is not withdrawn', 'cluster/orphan-recovery.js', 'else this.#withdraw(runId);'),
  of(
    'who takes over starts what is done',
    'run/decide.js',
    'const outstanding = run.progress.frontier.filter((each) => each.active);',
    'const outstanding = run.progress.frontier;',
  ),
  of(
    'a claim keeps the epoch',
    'run/decide.js',
    "const epoch = run.ownership.epoch + 1;\n  pending.write({ type: 'RunClaimed'",
    "const epoch = run.ownership.epoch;\n  pending.write({ type: 'RunClaimed'",
  ),
  of('a paused run keeps its owner', 'run/decide.js', "release(pending, 'paused');"),
  of(
    'commands do not wait for each other',
    ACTOR,
    'return this.#commands.run(() => this.#handle(command));',
    'return this.#handle(command);',
  ),
  of('what is under way is called again', ACTOR, 'if (this.#calls.has(key)) continue;'),
  of('one attempt more', 'run/live/attempts.js', 'failures >= maxAttempts', 'failures > maxAttempts'),
  of(
    'one execution more',
    'run/decide.js',
    'run.progress.steps + next.length > maxNodeExecutions',
    'run.progress.steps + next.length - 1 > maxNodeExecutions',
  ),
  {
    name: 'the quorum is one less',
    edits: [
      {
        file: 'run/human-decision.js',
        from: 'approvers.size >= (rule?.quorum ?? 1)',
        to: 'approvers.size + 1 >= (rule?.quorum ?? 1)',
      },
      {
        file: 'run/approvals.js',
        from: 'approversOf(pause, data).size >= rule.quorum',
        to: 'approversOf(pause, data).size + 1 >= rule.quorum',
      },
    ],
  },
  of(
    'votes for something else count',
    'run/approvals.js',
    'return votes.every((vote) => isSame(vote.choice, choice)) ? votes : [];',
    'return votes;',
  ),
  of(
    'votes outlive an escalation',
    'run/evolve.js',
    '{ votes: [], escalatedTo: event.data.to }',
    '{ escalatedTo: event.data.to }',
  ),
  {
    name: 'anybody decides',
    edits: [
      { file: 'run/approvals.js', from: 'const isIn = ', to: 'const isIn = true, was = ' },
      { file: 'run/approvals.js', from: 'return by === null ||', to: 'return true ||' },
    ],
  },
  of(
    'a deadline passes early',
    'run/approvals.js',
    'return deadline !== null && Date.parse(at) >= Date.parse(deadline);',
    'return deadline !== null;',
  ),
  of('stored deadlines are not kept', 'app/engine.js', 'deadlines.start();'),
  of(
    'a deadline is decided on what was known first',
    'run/commands/decide-pause.js',
    'read: replay,',
    'read: ((first) => () => (first ??= replay()))(),',
  ),
  of(
    'a repeated decision is a new one',
    'run/commands/decide-pause.js',
    'const earlier = replayed === null ? null : decidedBefore(replayed.snapshot.context.run, request, repeatedVotes);',
    'const earlier = null;',
  ),
  of(
    'of two equal starts the second fails',
    'run/commands/start.js',
    'if (!(error instanceof RevisionConflict)) throw error;',
    'throw error;',
  ),
  of(
    'a cancel is not recorded',
    'run/commands/cancel.js',
    '(await record(cancelled.replayed, cancelled.facts))',
    'cancelled.replayed.snapshot.context.run',
  ),
  of('views fold an event twice', VIEWS, 'if (event.seq !== view.run.head.seq + 1) return;'),
  of('the appends of others are not noticed', PROJECTOR, 'this.#options.onArrived?.(followed.event);'),
  of(
    'a watcher waits for what it has missed',
    'projections/run-feed.js',
    'if (watcher.isOver || audience.heard >= watcher.next) return;',
    'if (watcher.isOver) return;',
  ),
  of(
    'the checkpoint is written before its rows',
    'projections/run-history.js',
    'await this.#views.write(rows, this.#checkpoint);',
    'await this.#views.write({ runs: [], blueprints: [], documents: [] }, this.#checkpoint); await this.#views.write(rows, this.#checkpoint);',
  ),
  of(
    'the chain leaves out the event before',
    'eventsourcing/hash-chain.js',
    'hash = sha256(hash + hashedText',
    'hash = sha256(hashedText',
  ),
  of('a result of a tool is used before it is recorded', TOOL_CALL, 'await kit.record(', 'void kit.record('),
  of(
    'a result of a tool is recorded whatever has become of its attempt',
    'run/decide.js',
    "const at = attemptInFlight(pending.run, call);\n  if (at !== undefined) pending.write({ type: 'ToolCalled'",
    "const [at] = pending.run.progress.frontier;\n  if (at !== undefined) pending.write({ type: 'ToolCalled'",
  ),
  of(
    'a tool that breaks fails its attempt',
    TOOL_CALL,
    "return error === late ? 'late' : 'broken';",
    "if (error === late) return 'late';\n    throw error;",
  ),
  of('a tool is waited for without end', TOOL_CALL, '...deadline }', '...deadline, maxMs: 1e9 }'),
  of(
    'an attempt calls tools as often as it likes',
    'council/conversation.js',
    'calls.slice(0, callsLeft(spent))',
    'calls',
  ),
];
