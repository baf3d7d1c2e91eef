/** The pages of documents that the draft of a run cites, resolved by what the run's tools have found. */
import type { ToolHit } from '../generated/schemas.js';
import { citedPages } from '../council/citations.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { finalDraftOf } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import type { FoldEvents, Generation } from './parents.js';
import { parentsOf } from './parents.js';

/** A cited page. */
export interface CitedPage {
  /** As in the draft, without brackets. */
  readonly mark: string;
  /** Id of the document, or null if no tool of the run has found this page. */
  readonly document: string | null;
  readonly page: number;
  /** The found chunks of the page. */
  readonly chunks: readonly number[];
}

type PassageHit = Extract<ToolHit, { document: string }>;

/** What a run has found, and its draft. */
interface Found extends Generation {
  readonly draft: string;
  readonly hits: readonly PassageHit[];
}

/**
 * The citations in the final or current draft of a run, each once, in order, or null if there are no events. A fork also has
 * what its parents had found before the fork point, as far as they can be read and are those that it continues.
 *
 * @throws {RunCorrupt} an event of the run is invalid
 */
export async function citedPagesOf(runId: string, folded: FoldEvents): Promise<readonly CitedPage[] | null> {
  const own = await folded(runId, (events) => foundIn(runId, events));
  if (own === null) return null;
  const cited = citedPages(own.draft);
  const parents = cited.length === 0 ? [] : await parentsOf(own, folded, foundIn);
  const hits = [own, ...parents].flatMap((each) => each.hits);
  return cited.map(({ mark, document, page }) => {
    const found = hits.filter((hit) => hit.page === page && hit.document.startsWith(document.toLowerCase()));
    const chunks = [...new Set(found.map(({ chunk }) => chunk))].sort((one, other) => one - other);
    return { mark, document: found[0]?.document ?? null, page, chunks };
  });
}

async function foundIn(runId: string, events: AsyncIterable<RunEvent>): Promise<Found | null> {
  let run: RunState | null = null;
  const hits: PassageHit[] = [];
  for await (const recorded of events) {
    const event = upcast(recorded);
    run = foldNext(runId, run, event);
    if (event.type !== 'ToolCalled') continue;
    for (const hit of event.data.hits) if ('document' in hit) hits.push(hit);
  }
  if (run === null) return null;
  const { request, progress, head } = run;
  return { parent: request.parent, headHash: head.hash, draft: finalDraftOf(run) ?? progress.shown.draft ?? '', hits };
}
