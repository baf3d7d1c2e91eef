/** The texts of a run: its draft as a file, the pages that it cites, and its material. */
import { RequestRefused } from '../../api/problems.js';
import { draftSource } from '../../api/serializers/documents.js';
import type { CitedPage } from '../../audit/sources.js';
import { frontMatter, markLine, markProperties } from '../../draft/marking.js';
import { DocumentCorrupt } from '../../documents/errors.js';
import type { DraftSource } from '../../generated/schemas.js';
import { RunUnknown } from '../../run/errors.js';
import { attachment, fileNameOf } from '../content-disposition.js';
import { permitsFor, withPermit } from '../concurrency.js';
import { queryOf } from '../query.js';
import type { HttpContext, Route } from '../route.js';
import { runIdIn } from '../route.js';
import { isTrue } from './history-query.js';

const MARKDOWN = 'text/markdown';
const PLAIN = 'text/plain';
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

/** Documents that the service makes at a time, each in a thread of its own. */
const DOCUMENTS_AT_A_TIME = 2;

/** Lists of sources at a time; each reads a whole record. */
const LISTS_AT_A_TIME = 4;

/** GET /api/runs/{run_id}/draft, …/sources and …/material. */
export function draftRoutes(http: HttpContext): readonly Route[] {
  return [draftRoute(http), sourcesRoute(http), materialRoute(http)];
}

function draftRoute(http: HttpContext): Route {
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
    async handle(ctx, caller) {
      const { format, front_matter: front } = query.read(ctx);
      const runId = runIdIn(ctx);
      const { topic, draft, output } = await draftOf(http, runId);
      const headers = attachment(`${fileNameOf(topic)}.${format}`);
      if (format === 'md' && !isTrue(front))
        return { status: 200, body: draft, type: `${MARKDOWN}; charset=utf-8`, headers };
      const body = await withPermit(permits, { http, caller }, async () => {
        const marking = await http.marking(runId);
        if (marking === null) throw new RunUnknown({ runId });
        if (format === 'md') return frontMatter(marking) + draft;
        const mark = { properties: markProperties(marking), line: http.marksExports ? markLine(marking) : null };
        const sources = await sourcesOf(http, runId);
        return await http.docx(draft, { title: topic, sources, mark, ...(output !== undefined && { output }) });
      });
      if (format === 'md') return { status: 200, body, type: `${MARKDOWN}; charset=utf-8`, headers };
      return { status: 200, body, type: DOCX, headers };
    },
  };
}

interface DraftOfRun {
  readonly topic: string;
  readonly draft: string;
  /** The final output as indented JSON; absent without one. */
  readonly output?: string;
}

/** @throws {RunUnknown} @throws {RequestRefused} 404 without a draft */
async function draftOf(http: HttpContext, runId: string): Promise<DraftOfRun> {
  const run = await http.withinDeadline(http.queries.find(runId));
  if (run === null) throw new RunUnknown({ runId });
  const draft = run.finalDraft ?? (await currentDraft(http, runId));
  if (draft === null) throw new RequestRefused(`Run "${runId}" has no draft yet: it is ${run.status}`, { status: 404 });
  const { inputTopic: topic, finalOutput } = run;
  return { topic, draft, ...(finalOutput !== undefined && { output: JSON.stringify(finalOutput, null, 2) }) };
}

async function currentDraft(http: HttpContext, runId: string): Promise<string | null> {
  const run = await http.withinDeadline(http.queries.state(runId));
  return run?.progress.shown.draft ?? null;
}

function sourcesRoute(http: HttpContext): Route {
  const permits = permitsFor(LISTS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/sources',
    access: 'read',
    name: 'listSources',
    summary: 'Lists the pages of documents and of the web that the draft of a run cites',
    description:
      'As the tools of the run have found them; a fork also has what its parents had found. Says of each citation whether ' +
      'the words in quotation marks before it stand in the page.',
    tag: 'history',
    success: { status: 200, description: 'The cited pages', schema: 'source-list.json' },
    async handle(ctx, caller) {
      const runId = runIdIn(ctx);
      return { status: 200, body: await withPermit(permits, { http, caller }, () => sourcesOf(http, runId)) };
    },
  };
}

function materialRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/runs/{run_id}/material',
    access: 'read',
    name: 'getMaterial',
    summary: 'Returns the text that the council of a run works on; empty without',
    tag: 'history',
    success: { status: 200, description: 'The material as it was sent', schema: null, mediaType: PLAIN },
    async handle(ctx) {
      const runId = runIdIn(ctx);
      // The first event holds it.
      const run = await http.withinDeadline(http.queries.folded(runId, 0));
      if (run === null) throw new RunUnknown({ runId });
      return { status: 200, body: run.request.material ?? '', type: `${PLAIN}; charset=utf-8` };
    },
  };
}

/** The pages that the draft of a run cites. @throws {RunUnknown} */
async function sourcesOf(http: HttpContext, runId: string): Promise<readonly DraftSource[]> {
  const pages = await http.citedPages(runId);
  if (pages === null) throw new RunUnknown({ runId });
  const names = await http.withinDeadline(namesOf(http, pages));
  return pages.map((each) => draftSource(each, names.get(each.document ?? '') ?? null));
}

/** The names of the cited documents by id, without those that are deleted or damaged. */
async function namesOf({ documents }: HttpContext, pages: readonly CitedPage[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const id of new Set(pages.flatMap(({ document }) => document ?? []))) {
    const found = await documents.find(id).catch((error: unknown) => {
      if (error instanceof DocumentCorrupt) return null;
      throw error;
    });
    if (found !== null) names.set(id, found.filename);
  }
  return names;
}
