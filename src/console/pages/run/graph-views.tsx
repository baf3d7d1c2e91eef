/** The graph of a run: as it is, the council with marks of where the run stands; and as it ran, each execution a step. */
import { useSignal } from '@preact/signals';
import type { NodeView } from '../../record/graph.js';
import type { Camera } from '../../ui/camera-sight.js';
import { graphLayout, useChunk } from '../../ui/chunks.js';
import { Segments } from '../../ui/controls.js';
import { Awaited, Empty } from '../../ui/states.js';
import type { GraphNodeShown, GraphProps } from '../../ui/graph.js';
import { Graph } from '../../ui/graph.js';
import type { RunStore } from './store.js';
import { pageOf, stepId, unrolled } from './unrolled.js';

const VIEWS = [
  { value: 'is', text: 'As it is' },
  { value: 'ran', text: 'As it ran' },
] as const;

/** Either view; each keeps where the person looks. */
export function RunGraph({ store }: { readonly store: RunStore }) {
  const [is, ran] = [useSignal<Camera | null>(null), useSignal<Camera | null>(null)];
  const layout = useChunk(graphLayout);
  const view = store.view.value;
  if (store.graph.value?.nodes.length === 0) {
    return <Empty title="There is no graph">The council could not be run.</Empty>;
  }
  return (
    <section class="run-graph" aria-label="Graph">
      <Segments label="Graph" value={view} options={VIEWS} onChange={(next) => store.setView(next)} />
      <Awaited of={layout} what="the graph">
        {({ layoutGraph }) =>
          view === 'is' ? (
            <AsItIsView key="is" {...{ store, layoutGraph }} camera={is} />
          ) : (
            <AsItRanView key="ran" {...{ store, layoutGraph }} camera={ran} />
          )
        }
      </Awaited>
    </section>
  );
}

interface ViewProps {
  readonly store: RunStore;
  readonly camera: NonNullable<GraphProps['camera']>;
  readonly layoutGraph: GraphProps['layoutGraph'];
}

function AsItIsView({ store, camera, layoutGraph }: ViewProps) {
  const { nodes, edges } = store.graph.value ?? { nodes: [], edges: [] };
  const selected = store.selectedStep.value;
  const { node = null } = store.executions.value?.executions.find(({ step }) => step === selected) ?? {};
  return (
    <Graph
      name="The council, and where the run stands in it"
      {...{ camera, layoutGraph }}
      nodes={nodes.map(nodeShown)}
      edges={edges.map((edge) => ({ ...edge, label: edge.condition }))}
      current={standing(nodes.map(nodeShown))}
      selectedNode={node}
      onSelectNode={(id) => store.select(nodes.find((each) => each.id === id)?.lastStep ?? null)}
    />
  );
}

function nodeShown({ id, label, role, standing, doneTimes, lastScore, failedTimes }: NodeView): GraphNodeShown {
  const words = [role, lastScore !== null && `score ${lastScore}`, failedTimes > 0 && `${failedTimes} failed`];
  return { id, label, kind: role, standing, times: doneTimes, about: words.filter(Boolean).join(' · ') };
}

/** The last node at which something goes on, or else that was reached. */
function standing(nodes: readonly GraphNodeShown[]): string | null {
  const there = nodes.filter(({ standing: how = 'idle', isAbsent }) => isAbsent !== true && how !== 'idle');
  return (there.findLast(({ standing: how }) => how !== 'done') ?? there.at(-1))?.id ?? null;
}

function AsItRanView({ store, camera, layoutGraph }: ViewProps) {
  const [now, whole] = [store.executions.value, store.whole.value];
  const turned = useSignal<{ readonly of: number; readonly page: number } | null>(null);
  const ownPage = pageOf(now?.executions.length ?? 0);
  // Whoever moves on to other steps is shown those.
  const page = turned.value?.of === ownPage ? turned.value.page : ownPage;
  const shared = { name: 'The run as it ran', camera, layoutGraph };
  if (now === null || whole === null) return <Graph {...shared} nodes={[]} edges={[]} />;
  const { nodes, edges, targets } = unrolled(now, whole, page);
  const step = store.selectedStep.value;
  return (
    <Graph
      {...shared}
      direction="right"
      grows
      nodes={nodes}
      edges={edges}
      current={standing(nodes)}
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
