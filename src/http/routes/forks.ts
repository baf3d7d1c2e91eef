/** Forks: a new run that continues from an event of another. */
import type { ValidateFunction } from 'ajv/dist/2020.js';
import type { RouterContext } from '@koa/router';
import { mostNodeExecutions } from '../../graph/limits.js';
import { RunUnknown } from '../../run/errors.js';
import type {
  FieldError,
  ForkRequest,
  GraphMember,
  GraphNode,
  NodeChange,
  RunRequestedData,
  StateOverride,
} from '../../generated/schemas.js';
import type { ForkChanges, ForkedNode } from '../../run/fork.js';
import { graphMember, savedMembers } from '../../blueprint/members.js';
import { hasMembers, openPanels } from '../../run/panels/panels.js';
import { assertMayRead, assertScope } from '../../api/access/authentication.js';
import { executionLimitError, planFork, buildForkRequest, unapprovedNode } from '../../run/fork.js';
import type { Caller } from '../../keys/caller.js';
import type { RunState } from '../../run/state.js';
import { bodyOf, startBodyBytes } from '../body.js';
import { assertMatter } from '../matter.js';
import { assertPriced, budgetOf, startCounted } from '../starts.js';
import { assertFits, overrideOf, refuseOverride } from '../override.js';
import type { RequestRefused } from '../../api/problems.js';
import { brokenRules } from '../../api/problems.js';
import { queryOf } from '../query.js';
import type { Permits } from '../concurrency.js';
import { withPermit, permitsFor } from '../concurrency.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn, outcomeUnknown } from '../route.js';
import { forkPlan, runStart } from '../../api/serializers/runs.js';
import { runStream } from '../../run/events.js';

/** Parents read at a time, each from its beginning. */
const PARENTS_AT_A_TIME = 4;
/** Values of `dry_run` that request a dry run. */
const DRY: ReadonlySet<string> = new Set(['1', 'true']);
/** Place of the override in a fork's body. */
const AT_OVERRIDE = ['body', 'changes', 'modified_state'];
/** Place of the limit of node executions in a fork's body. */
const AT_BOUND = ['body', 'changes', 'max_node_executions'];

/** POST /api/runs/{run_id}/fork. */
export function forkRoutes(http: HttpContext): readonly Route[] {
  const maxBytes = startBodyBytes(http.maxMaterialBytes);
  const body = bodyOf(http, 'fork-request.json', { isRequired: true, maxBytes });
  const query = queryOf(http.schemas, 'fork-query.json');
  const permits = permitsFor(PARENTS_AT_A_TIME);
  const route: Route = {
    method: 'POST',
    path: '/api/runs/{run_id}/fork',
    access: 'run',
    name: 'forkRun',
    summary: 'Starts a run that continues from an event of another run, with optional changes',
    tag: 'audit',
    body,
    query,
    success: {
      status: 202,
      description: 'The new run is recorded and continues in the background',
      schema: 'run-start.json',
    },
    otherSuccess: {
      status: 200,
      description: 'With `dry_run=1`: the plan of the fork, which is not started',
      schema: 'fork-plan.json',
    },
    async handle(ctx, caller) {
      const sent = await body.read(ctx);
      await assertMatter(http, sent.changes ?? {}, ['body', 'changes']);
      const isDry = DRY.has(query.read(ctx).dry_run);
      const changes = changesIn(sent, http.schemas.validator('state-override.json'));
      const request = await requestFromParent(ctx, http, { sent, changes, caller, permits });
      assertPriced(request, http);
      const facts = http.registry.previewStart(request);
      assertWithinExecutionLimit(request, executionLimitError(facts));
      if (isDry) return { status: 200, body: forkPlan(planFork(facts)) };
      const starting = startCounted({ ctx, http, caller }, { request, failure: null });
      const recorded = await http.withinDeadline(starting, outcomeUnknown(runStream(request.runId)));
      http.log.info({ runId: recorded.runId, parent: recorded.parent, actor: caller.actor }, 'run forked');
      return { status: 202, body: runStart(recorded) };
    },
  };
  return [route];
}

/** The request of the new run, with the state of its parent. */
async function requestFromParent(
  ctx: RouterContext,
  http: HttpContext,
  {
    sent,
    changes,
    caller,
    permits,
  }: {
    readonly sent: ForkRequest;
    readonly changes: ForkChanges;
    readonly caller: Caller;
    readonly permits: Permits;
  },
): Promise<RunRequestedData> {
  const parentId = runIdIn(ctx);
  const first = await withPermit(permits, { http, caller }, () => http.queries.folded(parentId, 0));
  if (first !== null) assertMayRead(caller, first.request);
  const point = await withPermit(permits, { http, caller }, () => http.queries.forkPoint(parentId, sent.at));
  if (point === null) throw new RunUnknown({ runId: parentId });
  if (point.run === null) throw noForkPoint(point.refusal);
  const { run: parent } = point;
  assertKnown(parent, changes.nodes);
  if (changes.nodes.some((change) => givesReader(parent, change))) assertScope(caller, 'read');
  assertMembers(parent, changes.nodes);
  assertCouncils(parent, sent.changes?.nodes ?? []);
  assertBound(parent, changes.maxNodeExecutions);
  const alwaysPauses = await alwaysPausesNow(http, parent);
  const { uuid, sha256 } = http.system;
  const bodyHash = sha256(http.canonical(sent));
  const names = { runId: uuid(), bodyHash, actor: caller.actor };
  const fork = { ...names, alwaysPauses, fullName: http.fullName, sha256 };
  try {
    if (alwaysPauses) assertApproved(unapprovedNode(parent, changes));
    return buildForkRequest(parent, changes, fork);
  } catch (error) {
    return refuseOverride(error, AT_OVERRIDE);
  }
}

/** Whether a change gives a node the PDF reader: the caller may then read any document by the node's instructions. */
function givesReader({ plan }: RunState, { id, tools }: ForkedNode): boolean {
  return tools?.pdfReader === true && !plan.node(id).tools.pdfReader;
}

/** Whether the council of a run is saved now with `god_mode` `always`. */
async function alwaysPausesNow(http: HttpContext, { request: { blueprintId } }: RunState): Promise<boolean> {
  const council = blueprintId === null ? null : await http.withinDeadline(http.blueprints.find(blueprintId));
  return council?.god_mode === 'always';
}

/** @throws {RequestRefused} 422 if a node has begun without an approval */
function assertApproved(node: string | null): void {
  if (node === null) return;
  const why = `node "${node}" has begun, and its council asks for an approval before each node`;
  throw noForkPoint(`${why}: fork at an event before it begins`);
}

/** @throws {RequestRefused} 413, 422 */
function changesIn({ budget, changes = {} }: ForkRequest, isOverride: ValidateFunction<StateOverride>): ForkChanges {
  const { input_topic: inputTopic = null, material, modified_state: sent = null, nodes = [] } = changes;
  const { documents, output_schema: outputSchema, max_node_executions: maxNodeExecutions = null } = changes;
  assertFits(sent);
  const override = sent === null ? null : overrideOf(sent, { isOverride, at: AT_OVERRIDE });
  const repeated = nodes.findIndex(({ id }, index) => nodes.slice(0, index).some((earlier) => earlier.id === id));
  if (repeated >= 0) throw brokenRules([nodeError(repeated, 'An earlier node has this id', 'duplicate')]);
  return {
    inputTopic,
    material,
    documents,
    outputSchema,
    override,
    nodes: nodes.map(forkedNode),
    maxNodeExecutions,
    budget: budgetOf(budget),
  };
}

function forkedNode({ members, council: _, ...change }: NodeChange): ForkedNode {
  const { for_each: forEach, max_parallel: maxParallel, on_error: onError, ...same } = change;
  return {
    ...same,
    ...(members !== undefined && { members: savedMembers(members).map(graphMember) }),
    ...(forEach !== undefined && { forEach }),
    ...(maxParallel !== undefined && { maxParallel }),
    ...(onError !== undefined && { onError }),
  };
}

/** Refuses another council, and a council's fields for another node. */
function assertCouncils({ plan }: RunState, nodes: readonly NodeChange[]): void {
  const errors = nodes.flatMap((change, index) => {
    const fields = (['council', 'topic', 'for_each', 'max_parallel', 'on_error'] as const).filter(
      (field) => change[field] !== undefined,
    );
    const [field] = fields;
    const isCouncil = plan.node(change.id).role === 'council';
    if (field === undefined || (isCouncil && field !== 'council')) return [];
    const msg = isCouncil ? 'A fork keeps the councils of its parent' : 'Only a council has this field';
    return [{ loc: ['body', 'changes', 'nodes', index, field], msg, type: 'value_error' }];
  });
  if (errors.length > 0) throw brokenRules(errors);
}

/**
 * Refuses changes of members that no run could follow: of a node without them or at work, fewer than two of a panel, equal
 * ids, or a quorum above their number.
 */
function assertMembers(run: RunState, nodes: readonly ForkedNode[]): void {
  const errors = nodes.flatMap((change, index) => {
    const fields = (['members', 'quorum', 'graceMs', 'keep', 'aggregate'] as const).filter(
      (field) => change[field] !== undefined,
    );
    const [field] = fields;
    const reason = field === undefined ? null : memberFault(run, change);
    return reason === null
      ? []
      : [{ loc: ['body', 'changes', 'nodes', index, field ?? 'members'], msg: reason, type: 'value_error' }];
  });
  if (errors.length > 0) throw brokenRules(errors);
}

function memberFault(run: RunState, { id, members, quorum }: ForkedNode): string | null {
  const node = run.plan.node(id);
  if (!hasMembers(node)) return 'Only a panel, a rank or a jury has members';
  const most = (members ?? node.members ?? []).length;
  if ((quorum ?? node.quorum ?? 0) > most) return `The quorum is above the number of members, ${most}`;
  return members === undefined ? null : listFault(run, node, members);
}

function listFault(run: RunState, { id, role }: GraphNode, members: readonly GraphMember[]): string | null {
  if (openPanels(run).some((panel) => panel.node === id)) return 'Its members are at work: fork at an earlier event';
  if (new Set(members.map((member) => member.id)).size < members.length) return 'Two members have the same id';
  return members.length < (role === 'panel' ? 2 : 1) ? 'A panel has at least two members, others one' : null;
}

function assertKnown({ plan }: RunState, nodes: readonly Pick<ForkedNode, 'id'>[]): void {
  const unknown = nodes.flatMap(({ id }, index) =>
    !plan.hasNode(id) ? [nodeError(index, 'The run has no such node', 'unknown_node')] : [],
  );
  if (unknown.length > 0) throw brokenRules(unknown);
}

function assertBound({ plan }: RunState, wanted: number | null): void {
  const most = mostNodeExecutions(plan.graph.nodes.length);
  if (wanted === null || wanted <= most) return;
  throw brokenRules([{ loc: AT_BOUND, msg: `Input should be less than or equal to ${most}`, type: 'less_than_equal' }]);
}

/** Refuses a fork that would reach its limit of node executions before any model call. */
function assertWithinExecutionLimit({ graph }: RunRequestedData, reached: string | null): void {
  if (reached === null) return;
  const raise = `${AT_BOUND.slice(1).join('.')} raises it, up to ${mostNodeExecutions(graph.nodes.length)}`;
  throw brokenRules([
    { loc: ['body', 'at'], msg: `No run can continue from there: ${reached}; ${raise}`, type: 'execution_limit' },
  ]);
}

function nodeError(index: number, msg: string, type: string): FieldError {
  return { loc: ['body', 'changes', 'nodes', index, 'id'], msg, type };
}

function noForkPoint(refusal: string): RequestRefused {
  return brokenRules([
    { loc: ['body', 'at'], msg: `No run can continue from there: ${refusal}`, type: 'no_fork_point' },
  ]);
}
