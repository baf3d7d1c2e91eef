/** Searches the documents as an agent does: shows the chunks nearest to a question. */
import { useSignal } from '@preact/signals';
import type { FoundPassage } from '../../../client/client.js';
import { countOf } from '../../record/counts.js';
import { council } from '../../shell/council.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { Button, TextBox } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';

/** Number of results. */
const RESULTS = 8;

export function Search() {
  const asked = query.value.get('q') ?? '';
  const typed = useSignal(asked);
  function ask(event: Event): void {
    event.preventDefault();
    setQuery({ q: typed.value.trim() }, { replace: false });
  }
  return (
    <section class="card search" aria-label="Search">
      <form role="search" onSubmit={ask}>
        <TextBox
          label="Search as members do"
          type="search"
          maxLength={1_000}
          value={typed.value}
          onType={(text) => (typed.value = text)}
        />
        <Button type="submit" disabled={typed.value.trim() === ''}>
          Search
        </Button>
      </form>
      {asked !== '' && <Answer asked={asked} />}
    </section>
  );
}

function Answer({ asked }: { readonly asked: string }) {
  const answer = useResource(`search ${asked}`, (signal) => council.documents.search(asked, { topK: RESULTS, signal }));
  return (
    <WhenLoaded of={answer} what="the results">
      {(found) => <Hits found={found} />}
    </WhenLoaded>
  );
}

function Hits({ found }: { readonly found: readonly FoundPassage[] }) {
  return (
    <>
      <div class="row spread">
        <p class="muted small" role="status">
          {found.length === 0 ? 'No results.' : `${countOf(found.length, 'result')}, nearest first`}
        </p>
        <Button tone="plain" slim onClick={() => setQuery({ q: null })}>
          Clear
        </Button>
      </div>
      <ol class="hits" aria-label="Search results">
        {found.map(({ document, filename, page, chunk, score, text, cite }) => (
          <li key={`${document} ${chunk}`}>
            <span class="row spread">
              <a class="name break" href={pageUrl(['documents', document], { page, chunk })}>
                {filename ?? document}, page {page}
              </a>
              <span class="muted small numeric">
                <code title="Citation of this page in drafts">{cite}</code> · score {score.toPrecision(3)}
              </span>
            </span>
            <p class="prose clamp">{text}</p>
          </li>
        ))}
      </ol>
    </>
  );
}
