/** The draft of a run as a file. */
import { RequestRefused } from '../../api/problems.js';
import { RunUnknown } from '../../run/errors.js';
import { attachment, fileNameOf } from '../content-disposition.js';
import { permitsFor, withPermit } from '../concurrency.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';

const MARKDOWN = 'text/markdown';
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

/** Documents made at a time, each in a thread of its own. */
const DOCUMENTS_AT_A_TIME = 2;

/** GET /api/runs/{run_id}/draft. */
export function draftRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'draft-query.json');
  const permits = permitsFor(DOCUMENTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/draft',
    access: 'read',
    name: 'getDraft',
    summary: 'Returns the final draft of a run as a file, or its current draft if it has no final one',
    tag: 'history',
    query,
    success: {
      status: 200,
      description: 'The draft; the name of the file is the topic',
      schema: null,
      mediaType: MARKDOWN,
      alsoAs: { [DOCX]: { description: 'With `format=docx`' } },
      headers: ['Content-Disposition'],
    },
    async handle(ctx) {
      const { format } = query.read(ctx);
      const runId = runIdIn(ctx);
      const { topic, draft } = await draftOf(http, runId);
      const headers = attachment(`${fileNameOf(topic)}.${format}`);
      if (format === 'md') return { status: 200, body: draft, type: `${MARKDOWN}; charset=utf-8`, headers };
      const body = await withPermit(permits, http, () => http.docx(draft, { title: topic }));
      return { status: 200, body, type: DOCX, headers };
    },
  };
}

interface DraftOfRun {
  readonly topic: string;
  readonly draft: string;
}

/** @throws {RunUnknown} @throws {RequestRefused} 404 without a draft */
async function draftOf(http: HttpContext, runId: string): Promise<DraftOfRun> {
  const run = await http.withinDeadline(http.queries.find(runId));
  if (run === null) throw new RunUnknown({ runId });
  const draft = run.finalDraft ?? (await currentDraft(http, runId));
  if (draft === null) throw new RequestRefused(`Run "${runId}" has no draft yet: it is ${run.status}`, { status: 404 });
  return { topic: run.inputTopic, draft };
}

async function currentDraft(http: HttpContext, runId: string): Promise<string | null> {
  const run = await http.withinDeadline(http.queries.state(runId));
  return run?.progress.shown.draft ?? null;
}
