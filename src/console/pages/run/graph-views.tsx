/** The graph of a run in two views: the council with the state of each node, and the executed steps. */
import { useSignal } from '@preact/signals';
import { answeredText } from '../../record/event-text.js';
import type { NodeView } from '../../record/graph.js';
import { roleName } from '../../record/page-words.js';
import type { Camera } from '../../ui/camera-sight.js';
import { graphLayout, useChunk } from '../../ui/chunks.js';
import { Segments } from '../../ui/controls.js';
import { WhenLoaded } from '../../ui/states.js';
import type { GraphNodeShown, GraphProps } from '../../ui/graph.js';
import { Graph } from '../../ui/graph.js';
import type { RunStore } from './store.js';
import { pageOf, stepId, executionGraph } from './execution-graph.js';

const VIEWS = [
  { value: 'is', text: 'Council' },
  { value: 'ran', text: 'Execution' },
] as const;

/** Each view keeps its camera. */
export function RunGraph({ store }: { readonly store: RunStore }) {
  const [is, ran] = [useSignal<Camera | null>(null), useSignal<Camera | null>(null)];
  const layout = useChunk(graphLayout);
  const view = store.view.value;
  if (store.graph.value?.nodes.length === 0) {
    return <p class="muted">The council has no graph: it cannot run.</p>;
  }
  return (
    <section class="run-graph" aria-label="Graph">
      <Segments label="Graph" value={view} options={VIEWS} onChange={(next) => store.setView(next)} />
      <WhenLoaded of={layout} what="the graph">
        {({ layoutGraph }) =>
          view === 'is' ? (
            <CouncilGraph key="is" {...{ store, layoutGraph }} camera={is} />
          ) : (
            <ExecutionView key="ran" {...{ store, layoutGraph }} camera={ran} />
          )
        }
      </WhenLoaded>
    </section>
  );
}

interface ViewProps {
  readonly store: RunStore;
  readonly camera: NonNullable<GraphProps['camera']>;
  readonly layoutGraph: GraphProps['layoutGraph'];
}

function CouncilGraph({ store, camera, layoutGraph }: ViewProps) {
  const { nodes, edges } = store.graph.value ?? { nodes: [], edges: [] };
  return (
    <Graph
      name="Council"
      {...{ camera, layoutGraph }}
      nodes={nodes.map(nodeShown)}
      edges={edges.map((edge) => ({ ...edge, label: edge.condition }))}
      current={currentNode(nodes.map(nodeShown))}
      selectedNode={store.selectedNode.value?.id ?? null}
      onSelectNode={(id) => store.selectNode(id, nodes.find((each) => each.id === id)?.lastStep ?? null)}
    />
  );
}

function nodeShown({
  id,
  label,
  role,
  council,
  state,
  doneTimes,
  lastScore,
  failedTimes,
  members,
}: NodeView): GraphNodeShown {
  const done = members !== null && lastScore === null && answeredText(members);
  const words = [
    council ?? roleName(role, members !== null),
    done,
    lastScore !== null && `score ${lastScore}`,
    failedTimes > 0 && members === null && `${failedTimes} failed`,
  ];
  return { id, label, kind: role, state, times: doneTimes, about: words.filter(Boolean).join(' · ') };
}

/** The last unfinished node, or else the last one reached. */
function currentNode(nodes: readonly GraphNodeShown[]): string | null {
  const there = nodes.filter(({ state = 'idle', isAbsent }) => isAbsent !== true && state !== 'idle');
  return (there.findLast(({ state }) => state !== 'done') ?? there.at(-1))?.id ?? null;
}

function ExecutionView({ store, camera, layoutGraph }: ViewProps) {
  const [now, whole] = [store.trace.value, store.fullTrace.value];
  const turned = useSignal<{ readonly of: number; readonly page: number } | null>(null);
  const ownPage = pageOf(now?.executions.length ?? 0);
  // Shows the page of the current step when that changes.
  const page = turned.value?.of === ownPage ? turned.value.page : ownPage;
  const shared = { name: 'Execution', camera, layoutGraph };
  if (now === null || whole === null) return <Graph {...shared} nodes={[]} edges={[]} />;
  const { nodes, edges, targets } = executionGraph(now, whole, page);
  const step = store.selectedStep.value;
  return (
    <Graph
      {...shared}
      direction="right"
      grows
      nodes={nodes}
      edges={edges}
      current={currentNode(nodes)}
      selectedNode={step === null ? null : stepId(step)}
      onSelectNode={(id) => {
        const target = id === null ? undefined : targets.get(id);
        if (target === undefined) store.select(null);
        else if ('step' in target) store.select(target.step);
        else if ('seq' in target) store.goTo(target.seq);
        else {
          turned.value = { of: ownPage, page: target.page };
          camera.value = null;
        }
      }}
    />
  );
}
