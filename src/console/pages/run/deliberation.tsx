/** What the members of a council said, ordered and compared: a section of the page and of a shared file. */
import { WhenLoaded } from '../../ui/states.js';
import type { Execution } from '../../record/executions.js';
import { chunk, useChunk } from '../../ui/chunks.js';
import type { RunStore } from './store.js';

/** Loads with the first panel, rank, jury or judge. */
const view = chunk(() => import('./deliberation/view.js'));

export function Deliberation({ store }: { readonly store: RunStore }) {
  const trace = store.fullTrace.value;
  const hasAny =
    trace !== null &&
    (trace.keptAnswers.length > 0 || trace.executions.some(({ panel, role }) => panel !== null || role === 'judge'));
  if (!hasAny) return <p class="muted">This run has no panel, rank, jury or judge.</p>;
  return <Section store={store} />;
}

function Section({ store }: { readonly store: RunStore }) {
  const loaded = useChunk(view);
  const trace = store.trace.value;
  return (
    <section class="deliberation" aria-label="Deliberation">
      <WhenLoaded of={loaded} what="the deliberation">
        {({ DeliberationView }) => trace !== null && <DeliberationView {...{ store, trace }} />}
      </WhenLoaded>
    </section>
  );
}

/** The members and the result of the selected panel, rank, jury or judge. */
export function StepDeliberation({ store, execution }: { readonly store: RunStore; readonly execution: Execution }) {
  const loaded = useChunk(view);
  const kept = store.trace.value?.keptAnswers.find(({ panelStep }) => panelStep === execution.step);
  return (
    <WhenLoaded of={loaded} what="the deliberation">
      {({ PartView, Answers }) =>
        execution.isInherited && kept !== undefined ? (
          <Answers answers={kept.answers} />
        ) : (
          <PartView {...{ store, execution }} />
        )
      }
    </WhenLoaded>
  );
}
