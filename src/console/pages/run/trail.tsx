/** The way from the outermost run to a run that a council has started. */
import type { ParentRun } from '../../../generated/schemas.js';
import { excerpt } from '../../record/counts.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { useResource } from '../../ui/resource.js';

/** Longest topic and title, in characters. */
const TEXT_CHARS = 60;

/** A run on the way, and where it has started the next one. */
interface Station {
  readonly runId: string;
  readonly topic: string;
  /** Of its council, or null for the built-in one. */
  readonly council: string | null;
  /** The label of the council's node. */
  readonly node: string;
  /** The title of the item of the next run, or null without items. */
  readonly title: string | null;
}

export function Trail({ of }: { readonly of: ParentRun }) {
  const { state } = useResource(`trail ${of.runId} ${of.step} ${of.index}`, (signal) => stationsTo(of, signal));
  const { value: found } = state;
  // The parent may be erased, or the service away.
  const stations =
    found.status === 'ready'
      ? found.value
      : [{ runId: of.runId, topic: '', council: null, node: of.node, title: of.title ?? null }];
  return (
    <nav class="row small trail" aria-label="Parent runs">
      {stations.map(({ runId, topic, council: name, node, title }, at) => (
        <span key={runId} class="break">
          <a href={pageUrl(['runs', runId])}>
            {shortened((at === 0 ? topic : (stations[at - 1]?.title ?? name)) || 'Parent run')}
          </a>
          <span class="muted">
            {` › ${node}`}
            {at === stations.length - 1 ? title !== null && ` › ${shortened(title)}` : ' ›'}
          </span>
        </span>
      ))}
    </nav>
  );
}

function shortened(text: string): string {
  return excerpt(text, TEXT_CHARS);
}

/** From the outermost run to the parent. */
async function stationsTo({ runId, node, title }: ParentRun, signal: AbortSignal): Promise<readonly Station[]> {
  for await (const { type, data } of council.run(runId).events({ signal })) {
    if (type !== 'RunRequested') break;
    const before = data.parentRun === undefined ? [] : await stationsTo(data.parentRun, signal);
    const label = data.graph.nodes.find(({ id }) => id === node)?.label ?? node;
    return [
      ...before,
      { runId, topic: data.inputTopic, council: data.blueprintName, node: label, title: title ?? null },
    ];
  }
  throw new Error(`Run ${runId} does not begin with its request`);
}
