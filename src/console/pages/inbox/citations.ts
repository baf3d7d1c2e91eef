/** The marks in the texts of a pause as links: those of its draft, and those that only its other texts have. */
import { useMemo } from 'preact/hooks';
import type { Approval } from '../../../generated/schemas.js';
import type { Citation, Source, SourceNaming } from '../../../draft/sources.js';
import {
  citationsOf,
  citedSources,
  hasUnknownMark,
  sourcesAt,
  sourcesOf,
  withInherited,
} from '../../../draft/sources.js';
import type { RunEvent } from '../../../client/run-events.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { useResource } from '../../ui/resource.js';
import { namesOfDocuments } from '../run/live-source.js';
import type { PauseContent } from './pause-content.js';

/** Sources with the file names of their documents. */
interface Named extends Pick<SourceNaming, 'names'> {
  readonly sources: readonly Source[];
}

const NONE: Named = { sources: [], names: new Map() };

/** The marks that are known so far. @param content or null until it is loaded */
export function useCitations(
  { run_id: runId, expected_seq: seq }: Approval,
  content: PauseContent | null,
): ReadonlyMap<string, Citation> {
  const ofDraft = useLoadedSources(`sources ${runId} ${seq}`, (signal) => sourcesOfDraft(runId, signal));
  const texts = content === null ? '' : otherTexts(content);
  const hasOthers = ofDraft !== null && hasUnknownMark(texts, ofDraft.sources);
  const others = useLoadedSources(hasOthers ? `others ${runId} ${seq}` : 'none', (signal) =>
    hasOthers ? sourcesOfTexts(texts, { runId, seq }, signal) : Promise.resolve(NONE),
  );
  return useMemo(() => {
    const [own, more] = [ofDraft ?? NONE, others ?? NONE];
    const names = new Map([...more.names, ...own.names]);
    return citationsOf(withInherited(own.sources, more.sources), { names, hrefOf });
  }, [ofDraft, others]);
}

/** Or null until they are loaded. */
function useLoadedSources(key: string, load: (signal: AbortSignal) => Promise<Named>): Named | null {
  const { value: found } = useResource(key, load).state;
  return found.status === 'ready' ? found.value : null;
}

function hrefOf(source: Source): string | null {
  if (source.kind === 'web') return null;
  const { document, page, chunk } = source;
  return pageUrl(['documents', document], { page, chunk });
}

/** The texts of a card beside the draft of the run. */
function otherTexts({ state, before }: PauseContent): string {
  const { current_state: shown, branches = [] } = state ?? {};
  const drafts = branches.map((branch) => branch.current_draft);
  return [before, shown?.feedback_history.at(-1), ...drafts].filter((text) => typeof text === 'string').join('\n');
}

async function sourcesOfDraft(runId: string, signal: AbortSignal): Promise<Named> {
  const found = await council.run(runId).sources({ signal });
  const named = found.flatMap(({ document, filename }) =>
    document === null || filename === null ? [] : [[document, filename] as const],
  );
  return { sources: found.flatMap(sourcesOf), names: new Map(named) };
}

/** What the texts cite, from the events of the run before its pause. */
async function sourcesOfTexts(
  texts: string,
  { runId, seq }: { readonly runId: string; readonly seq: number },
  signal: AbortSignal,
): Promise<Named> {
  const events: RunEvent[] = [];
  for await (const event of council.run(runId).events({ signal })) {
    events.push(event);
    if (event.seq >= seq) break;
  }
  const sources = citedSources(texts, sourcesAt(events, seq));
  const ids = sources.flatMap((source) => (source.kind === 'document' ? [source.document] : []));
  return { sources, names: await namesOfDocuments([...new Set(ids)], signal) };
}
