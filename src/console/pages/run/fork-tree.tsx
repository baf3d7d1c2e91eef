/** The ancestors and forks of a run. */
import type { RunStatus } from '../../record/outcome.js';
import type { Run } from '../../../client/run.js';
import { excerpt } from '../../record/counts.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { Status } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import type { RunStore } from './store.js';

/** Largest number of ancestors, and of forks per run. */
const [GENERATIONS, FORKS] = [20, 50];

/** A related run, and the event of its parent that it was forked at. */
interface Relative {
  readonly id: string;
  readonly topic: string;
  /** Or null without a parent. */
  readonly at: number | null;
  readonly status: RunStatus | null;
  readonly error: string | null;
}

interface Family {
  /** Oldest first, without the run itself. */
  readonly ancestors: readonly Relative[];
  readonly forks: readonly Fork[];
}

interface Fork extends Relative {
  readonly forks: readonly Fork[];
}

export function ForkTree({ store }: { readonly store: RunStore }) {
  const { source, summary } = store;
  const { parent = null, topic = '' } = summary.value ?? {};
  const family = useResource(`family ${source.id} ${parent?.runId}`, async (signal): Promise<Family> => {
    const ancestors = parent === null ? [] : await ancestorsOf(parent.runId, signal);
    return { ancestors, forks: await forksOf(source.id, 2, signal) };
  });
  return (
    <section class="stack close" aria-labelledby="forks">
      <h2 id="forks">Forks</h2>
      <WhenLoaded of={family} what="the forks" lines={2}>
        {(found) => (
          <FamilyTree {...found} self={{ id: source.id, topic, at: parent?.at ?? null, status: null, error: null }} />
        )}
      </WhenLoaded>
    </section>
  );
}

function FamilyTree({ ancestors, forks, self }: Family & { readonly self: Relative }) {
  if (ancestors.length + forks.length === 0) {
    return <p class="muted small">This run has no forks.</p>;
  }
  return <Line line={[...ancestors, self]} forks={forks} self={self.id} />;
}

interface LineProps {
  readonly line: readonly Relative[];
  readonly forks: readonly Fork[];
  readonly self: string;
  readonly parent?: string;
}

/** A run with the next one of its line nested in it; the last one holds its forks. */
function Line({ line: [first, ...rest], forks, self, parent }: LineProps) {
  if (first === undefined) return null;
  return (
    <ul class="fork-tree stack close">
      <li>
        <Member run={first} isSelf={first.id === self} parent={parent} />
        {rest.length > 0 ? (
          <Line line={rest} forks={forks} self={self} parent={first.id} />
        ) : (
          <Forks forks={forks} parent={first.id} />
        )}
      </li>
    </ul>
  );
}

function Forks({ forks, parent }: { readonly forks: readonly Fork[]; readonly parent: string }) {
  if (forks.length === 0) return null;
  return (
    <ul class="fork-tree stack close">
      {forks.map((fork) => (
        <li key={fork.id}>
          <Member run={fork} isSelf={false} parent={parent} />
          <Forks forks={fork.forks} parent={fork.id} />
        </li>
      ))}
    </ul>
  );
}

interface MemberProps {
  readonly run: Relative;
  readonly isSelf: boolean;
  readonly parent: string | undefined;
}

function Member({ run: { id, topic, at, status, error }, isSelf, parent }: MemberProps) {
  return (
    <span class="row">
      {isSelf ? <strong class="break">This run</strong> : <a href={pageUrl(['runs', id])}>{excerpt(topic, 60)}</a>}
      {status !== null && <Status status={status} error={error} />}
      {parent !== undefined && at !== null && (
        <>
          <a class="small" href={pageUrl(['runs', parent], { at })}>
            forked at event {at}
          </a>
          <a class="small" href={pageUrl(['compare'], { a: parent, b: id })}>
            compare
          </a>
        </>
      )}
    </span>
  );
}

async function ancestorsOf(id: string, signal: AbortSignal): Promise<readonly Relative[]> {
  const found: Relative[] = [];
  for (let next: string | null = id; next !== null && found.length < GENERATIONS;) {
    const { topic, parent } = await originOf(council.run(next), signal);
    found.unshift({ id: next, topic, at: parent?.at ?? null, status: null, error: null });
    next = parent?.runId ?? null;
  }
  return found;
}

async function forksOf(id: string, depth: number, signal: AbortSignal): Promise<readonly Fork[]> {
  const found: Fork[] = [];
  for await (const { id: child, input_topic: topic, status, error } of council.runs.list({ parent: id, signal })) {
    const { parent } = await originOf(council.run(child), signal);
    const forks = depth > 1 ? await forksOf(child, depth - 1, signal) : [];
    found.push({ id: child, topic, status, error, at: parent?.at ?? null, forks });
    if (found.length === FORKS) break;
  }
  return found;
}

/** The topic and the parent of a run, from its first event. */
async function originOf(run: Run, signal: AbortSignal) {
  for await (const event of run.events({ signal })) {
    if (event.type === 'RunRequested') return { topic: event.data.inputTopic, parent: event.data.parent };
  }
  return { topic: '', parent: null };
}
