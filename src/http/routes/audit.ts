/** The record of a run: its events, its state after each, its prompts and its verification. */
import { exportLine } from '../../audit/export.js';
import type { AttemptPlace } from '../../audit/prompt.js';
import type { RunLeaf } from '../../ledger/events.js';
import type { RunVerification } from '../../audit/verify.js';
import { RunUnknown } from '../../run/errors.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import { isKnown, tagged } from '../answer.js';
import { readBody } from '../chunked-body.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { queryOf } from '../query.js';
import type { Permits } from '../concurrency.js';
import { holdPermit, withPermit, permitsFor } from '../concurrency.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import { foldedRun, verification } from '../../api/serializers/runs.js';

/** Media type of an export. */
export const NDJSON = 'application/x-ndjson';

const ALL_EVENTS = { from: 0, limit: Number.MAX_SAFE_INTEGER };
/** Records sent at a time; each holds one chunk in memory. */
const RECORDS_AT_A_TIME = 16;
/** Records folded or verified at a time, each read from its beginning. */
const READINGS_AT_A_TIME = 16;

/** Deliberations at a time; each holds all answers of a run in memory. */
const DELIBERATIONS_AT_A_TIME = 4;

/** GET /api/runs/{run_id}/events, …/state, …/deliberation, …/prompt and …/verify. */
export function auditRoutes(http: HttpContext): readonly Route[] {
  const permits = permitsFor(READINGS_AT_A_TIME);
  return [
    eventsRoute(http),
    stateRoute(http, permits),
    deliberationRoute(http),
    promptRoute(http, permits),
    verifyRoute(http, permits),
  ];
}

function eventsRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'events-query.json');
  const permits = permitsFor(RECORDS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/events',
    access: 'read',
    name: 'listRunEvents',
    summary: "Lists a run's events in order, as stored",
    description: 'The events alone suffice to recompute the hash chain; `hash` of an event says how.',
    tag: 'audit',
    query,
    isConditional: true,
    success: {
      status: 200,
      description: "A page of the run's events; the ETag is the revision of the run's last event",
      schema: 'run-events-page.json',
      alsoAs: {
        [NDJSON]: {
          description: 'All events, regardless of `from` and `limit`, one per line in canonical JSON (RFC 8785)',
          each: 'run-event.json',
        },
      },
    },
    async handle(ctx, caller) {
      const page = query.read(ctx);
      const runId = runIdIn(ctx);
      const isLines = ctx.accepts('application/json', NDJSON) === NDJSON;
      const record = await http.withinDeadline(http.queries.record(runId, isLines ? ALL_EVENTS : page));
      if (record === null) throw new RunUnknown({ runId });
      const headers = tagged(String(record.head));
      ctx.vary('Accept');
      if (isKnown(ctx, headers)) return { status: 304, body: null, headers };
      await holdPermit(permits, { http, caller }, ctx.res);
      const texts = isLines ? linesOf(record.events()) : pageText(record.events(), { runId, next: record.next });
      const type = isLines ? NDJSON : 'json';
      return { status: 200, body: await readBody(texts, { http, response: ctx.res }), type, headers };
    },
  };
}

function stateRoute(http: HttpContext, permits: Permits): Route {
  const query = queryOf(http.schemas, 'state-query.json');
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/state',
    access: 'read',
    name: 'getFoldedRun',
    summary: 'Returns the state of a run after one of its events',
    tag: 'audit',
    query,
    success: { status: 200, description: 'The run, folded from its events', schema: 'folded-run.json' },
    async handle(ctx, caller) {
      const { at } = query.read(ctx);
      const runId = runIdIn(ctx);
      const run = await withPermit(permits, { http, caller }, () => http.queries.folded(runId, at));
      if (run === null) throw new RunUnknown({ runId });
      if (at !== undefined && run.head.seq < at) throw beyondTheEnd(run.head.seq);
      return { status: 200, body: foldedRun(run) };
    },
  };
}

function deliberationRoute(http: HttpContext): Route {
  const permits = permitsFor(DELIBERATIONS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/deliberation',
    access: 'read',
    name: 'getDeliberation',
    summary:
      'Returns the answers of panels, the rankings, analyses and scores of their reviewers, and how far they agree',
    description:
      'Of a run under way, what is recorded so far. Entries with the same `step` belong to one execution of a panel, rank, judge or jury. A fork begins with what its parents recorded before the fork points; if a parent cannot be read, with the answers that its own record holds: those of panels under way at the fork point, and those that later nodes can see.',
    tag: 'audit',
    success: { status: 200, description: 'The deliberation', schema: 'deliberation.json' },
    async handle(ctx, caller) {
      const runId = runIdIn(ctx);
      const deliberation = await withPermit(permits, { http, caller }, () => http.deliberation(runId));
      if (deliberation === null) throw new RunUnknown({ runId });
      return { status: 200, body: deliberation };
    },
  };
}

function promptRoute(http: HttpContext, permits: Permits): Route {
  const query = queryOf(http.schemas, 'prompt-query.json');
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/prompt',
    access: 'read',
    name: 'getStepPrompt',
    summary: 'Returns the prompt of a node at one of its steps',
    description: 'A fork has only its own steps; earlier ones are steps of its parent.',
    tag: 'audit',
    query,
    success: { status: 200, description: 'The prompt and its inputs', schema: 'step-prompt.json' },
    async handle(ctx, caller) {
      const at = query.read(ctx);
      const runId = runIdIn(ctx);
      const found = await withPermit(permits, { http, caller }, () => http.prompt(runId, at));
      if (found === 'no-run') throw new RunUnknown({ runId });
      if (found === 'no-attempt') throw new RequestRefused(noAttempt(runId, at), { status: 404 });
      if (found === 'no-prompt') throw new RequestRefused(NO_PROMPT, { status: 404 });
      return { status: 200, body: found };
    },
  };
}

const NO_PROMPT = 'A council sends no prompt itself: its runs do';

function noAttempt(runId: string, { step, attempt }: AttemptPlace): string {
  const what = attempt === undefined ? `step ${step}` : `attempt ${attempt} of step ${step}`;
  return `Run "${runId}" has no ${what}`;
}

function verifyRoute(http: HttpContext, permits: Permits): Route {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/verify',
    access: 'read',
    name: 'verifyRun',
    summary: 'Verifies the record of a run and reports its first difference',
    tag: 'audit',
    success: { status: 200, description: 'The result', schema: 'verification.json' },
    async handle(ctx, caller) {
      const runId = runIdIn(ctx);
      const audit = await withPermit(permits, { http, caller }, () => http.verify(runId));
      if (audit === null) throw new RunUnknown({ runId });
      const found = await http.withinDeadline(http.ledger.leafOf(runId));
      const covered = found !== null && found.index < http.ledger.checkpoints.covered;
      const place = found && { index: found.index, covered };
      const firstDifference = audit.firstDifference ?? (found && differenceFrom(found.leaf, audit.headHash));
      return { status: 200, body: verification(runId, { ...audit, firstDifference }, place) };
    },
  };
}

/** Where a record differs from its leaf in the ledger, or null. */
function differenceFrom({ events, headHash }: RunLeaf, hash: string): RunVerification['firstDifference'] {
  return hash === headHash
    ? null
    : { seq: events - 1, what: 'its last event has another hash than its leaf in the ledger' };
}

/** 422 for an `at` past the last event. */
export function beyondTheEnd(head: number): RequestRefused {
  const msg = `Input should be at most ${head}, the revision of the last event`;
  return brokenRules([{ loc: ['query', 'at'], msg, type: 'less_than_equal' }]);
}

/** An export: one event per line in canonical JSON. */
export async function* linesOf(events: AsyncIterable<ExportedEvent>): AsyncGenerator<string> {
  for await (const event of events) yield `${exportLine(event)}\n`;
}

/** The JSON text of a page. */
async function* pageText(
  events: AsyncIterable<ExportedEvent>,
  { runId, next }: { readonly runId: string; readonly next: number | null },
): AsyncGenerator<string> {
  yield `{"run_id":${JSON.stringify(runId)},"events":[`;
  let before = '';
  for await (const { seq, id, type, at, data, hash } of events) {
    yield before + JSON.stringify({ seq, id, type, at, data, hash });
    before = ',';
  }
  yield `],"next":${next}}`;
}
