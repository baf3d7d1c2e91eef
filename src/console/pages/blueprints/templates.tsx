/** The example councils of the service: a picture and the purpose of each, to use or to try. */
import { useMemo } from 'preact/hooks';
import type { ExampleCouncil } from '../../../generated/schemas.js';
import type { LayoutGraph } from '../../record/placement.js';
import { council } from '../../shell/council.js';
import { navigate, pageUrl } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { graphLayout, useChunk } from '../../ui/chunks.js';
import { Button } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { draftOf } from '../blueprint/draft.js';
import { openInEditor } from './import-dialog.js';

export function Templates() {
  const examples = useResource('examples', (signal) => council.blueprints.examples({ signal }));
  return (
    <section class="stack" aria-labelledby="templates">
      <h2 id="templates">Templates</h2>
      <WhenLoaded of={examples} what="the templates">
        {(found) => (
          <ul class="templates">
            {found.map((example) => (
              <Template key={example.id} example={example} />
            ))}
          </ul>
        )}
      </WhenLoaded>
    </section>
  );
}

function Template({ example }: { readonly example: ExampleCouncil }) {
  const { name, description } = example;
  function open(parameters: Readonly<Record<string, number>> = {}): void {
    openInEditor(draftOf(example));
    navigate(pageUrl(['blueprints', 'new'], parameters));
  }
  return (
    <li class="card stack close">
      <Picture example={example} />
      <h3>{name}</h3>
      <p class="small grow">{description}</p>
      <div class="row">
        {may('author') && (
          <Button slim onClick={() => open()}>
            Use<span class="unseen"> {name}</span>
          </Button>
        )}
        {may('run') && (
          <Button slim tone="plain" onClick={() => open({ try: 1 })}>
            Try<span class="unseen"> {name}</span>
          </Button>
        )}
      </div>
    </li>
  );
}

function Picture({ example }: { readonly example: ExampleCouncil }) {
  const { value: loaded } = useChunk(graphLayout).state;
  return (
    <div class="template-picture" aria-hidden="true">
      {loaded.status === 'ready' && <Drawn example={example} layoutGraph={loaded.value.layoutGraph} />}
    </div>
  );
}

/** Size of a member in the picture, in its own units. */
const BOX = { width: 44, height: 22 };
const MARGIN = 4;

function Drawn({ example, layoutGraph }: { readonly example: ExampleCouncil; readonly layoutGraph: LayoutGraph }) {
  const { nodes, edges } = useMemo(() => placed(example, layoutGraph), [example]);
  const right = Math.max(...nodes.map(({ x, width }) => x + width));
  const bottom = Math.max(...nodes.map(({ y, height }) => y + height));
  const [left, top] = [Math.min(...nodes.map(({ x }) => x)), Math.min(...nodes.map(({ y }) => y))];
  const box = [left - MARGIN, top - MARGIN, right - left + 2 * MARGIN, bottom - top + 2 * MARGIN];
  return (
    <svg viewBox={box.join(' ')}>
      {edges.map((points, at) => (
        <polyline key={at} points={points.map(({ x, y }) => `${x},${y}`).join(' ')} />
      ))}
      {nodes.map(({ id, x, y, width, height }) => (
        <rect key={id} {...{ x, y, width, height }} rx={5} />
      ))}
    </svg>
  );
}

function placed({ nodes, edges }: ExampleCouncil, layoutGraph: LayoutGraph) {
  const ends = edges.map(({ source, target }, at) => ({ id: String(at), source, target }));
  const places = layoutGraph(
    nodes.map(({ id }) => ({ id, ...BOX })),
    ends,
    'right',
  );
  return {
    nodes: [...places.nodes.values()],
    edges: [...places.edges.values()].map(({ points }) => points),
  };
}
