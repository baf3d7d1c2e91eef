/** A graph: drawn, looked around in, walked through by keyboard and, where its owner lets it, changed. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks';
import type { Direction, LayoutGraph, PlacedNode, Places, Point } from '../record/placement.js';
import type { CameraState, ViewCamera } from './camera.js';
import { ARROWS, useCamera } from './camera.js';
import { Button } from './controls.js';
import type { GraphEditing } from './graph-editing.js';
import { useGraphEditing } from './graph-editing.js';
import { EdgeLabel, EdgeLine, LineInWork, NodeBox } from './graph-parts.js';
import type { GraphEdgeShown, GraphNodeShown } from './graph-shown.js';
import { edgeWords } from './graph-shown.js';
import { boundsOf, neighbourOf, placesOf, sizeOf, spaceOf } from './graph-ways.js';

export type { GraphEdgeShown, GraphNodeShown } from './graph-shown.js';

export interface GraphProps {
  /** What it is the graph of. */
  readonly name: string;
  readonly nodes: readonly GraphNodeShown[];
  readonly edges: readonly GraphEdgeShown[];
  readonly layoutGraph: LayoutGraph;
  readonly direction?: Direction;
  /** It gets longer while it is looked at: it begins at the left. */
  readonly grows?: boolean;
  /** The node at which things stand: shown at first, and when asked for. */
  readonly current?: string | null;
  /** Where the person looks, to keep it while the graph is away. */
  readonly camera?: CameraState;
  readonly selectedNode?: string | null;
  readonly selectedEdge?: string | null;
  /** Null: what is no node was clicked. */
  readonly onSelectNode?: (id: string | null) => void;
  readonly onSelectEdge?: (id: string) => void;
  /** A node was put somewhere, by dragging or Shift and arrows. */
  readonly onMove?: (id: string, position: Point) => void;
  /** An edge was drawn, from a node's port or with the key C. */
  readonly onConnect?: (source: string, target: string) => void;
  /** How often it was laid out anew: each time it is shown as at first. */
  readonly round?: number;
  /** More buttons beside those of the camera. */
  readonly tools?: ComponentChildren;
}

/** The camera shows at first what can be read, and then stays where the person puts it, whatever becomes of the graph. */
export function Graph(props: GraphProps) {
  const { name, nodes, edges, onSelectNode, onMove, tools, round = 0 } = props;
  const editing = useGraphEditing({ onMove, onConnect: props.onConnect });
  const places = usePlaces(props, editing);
  const drawing = useMemo(() => boundsOf(places), [places]);
  const current = places.nodes.get(props.current ?? '') ?? null;
  const [first = drawing] = places.nodes.values();
  const camera = useCamera({ drawing, camera: props.camera, grows: props.grows, part: current ?? first });
  useEffect(() => {
    if (round > 0) camera.show();
  }, [round]);
  const described = describedEdges(nodes, edges);
  return (
    <div class="graph" style={{ '--drawing-height': `${drawing.height}px` }}>
      <div
        class={`graph-view${onMove === undefined ? '' : ' editable'}`}
        ref={camera.view}
        role="group"
        aria-label={name}
        aria-roledescription="graph"
        tabIndex={0}
        onWheel={camera.onWheel}
        onPointerDown={camera.onPointerDown}
        onPointerMove={camera.onPointerMove}
        onPointerUp={camera.onPointerUp}
        onPointerCancel={camera.onPointerCancel}
        onClickCapture={camera.onClickCapture}
        onKeyDown={camera.onKeyDown}
        onClick={(event) => event.target === event.currentTarget && onSelectNode?.(null)}
      >
        <Seen camera={camera.state}>
          <Edges {...{ props, places, editing, described }} />
          <Nodes {...{ props, places, editing, camera }} />
        </Seen>
      </div>
      <div class="graph-tools" role="group" aria-label="View">
        {tools}
        {current !== null && (
          <Button slim onClick={() => camera.reveal(current)}>
            Where it stands
          </Button>
        )}
        <Button slim label="Zoom out" onClick={camera.zoomOut}>
          −
        </Button>
        <Button slim label="Zoom in" onClick={camera.zoomIn}>
          +
        </Button>
        <Button slim label="Fit the graph into view" onClick={camera.fit}>
          Fit
        </Button>
      </div>
      <ul class="unseen" aria-label="Edges">
        {described.map(({ edge, words }) => (
          <li key={edge.id}>{words}</li>
        ))}
      </ul>
    </div>
  );
}

/** The edges in words. */
function describedEdges(nodes: GraphProps['nodes'], edges: GraphProps['edges']): EdgesProps['described'] {
  const names = new Map(nodes.map(({ id, label }) => [id, label]));
  return edges.map((edge) => ({ edge, words: edgeWords(edge, names) }));
}

/** Moves what is drawn under the camera, without drawing it anew. */
function Seen({ camera, children }: { readonly camera: CameraState; readonly children: ComponentChildren }) {
  const { x, y, scale } = camera.value ?? { x: 0, y: 0, scale: 1 };
  const visibility = camera.value === null ? 'hidden' : undefined;
  return (
    <div class="graph-drawing" style={{ transform: `translate(${x}px, ${y}px) scale(${scale})`, visibility }}>
      {children}
    </div>
  );
}

interface PartProps {
  readonly props: GraphProps;
  readonly places: Places;
  readonly editing: GraphEditing;
}

interface EdgesProps extends PartProps {
  readonly described: readonly { readonly edge: GraphEdgeShown; readonly words: string }[];
}

function Edges({ props: { nodes, selectedEdge = null, onSelectEdge }, places, editing, described }: EdgesProps) {
  const keep = useKept();
  const select = useLatest((id: string) => onSelectEdge?.(id));
  const onSelect = onSelectEdge && select;
  const isEdited = onSelect !== undefined;
  const standings = new Map(
    nodes.flatMap((node) => (node.isAbsent === true ? [] : [[node.id, node.standing] as const])),
  );
  const shown = described.flatMap(({ edge, words }) => {
    const way = places.edges.get(edge.id);
    if (way === undefined || !standings.has(edge.source) || !standings.has(edge.target)) return [];
    const isMoving = edge.isLastTaken === true && standings.get(edge.target) === 'active';
    return [{ edge, way, words, isMoving, isSelected: selectedEdge === edge.id, onSelect }];
  });
  const { source = '', to = null } = editing.edge.value ?? {};
  const from = places.nodes.get(source);
  return (
    <>
      <svg class="graph-edges" aria-hidden="true">
        {shown.map((each) =>
          keep(`line ${each.edge.id}`, [each, isEdited], () => <EdgeLine key={each.edge.id} {...each} />),
        )}
        {from !== undefined && to !== null && <LineInWork from={from} to={to} />}
      </svg>
      {shown.map((each) =>
        keep(`label ${each.edge.id}`, [each, isEdited], () => <EdgeLabel key={each.edge.id} {...each} />),
      )}
    </>
  );
}

function Nodes({ props, places, editing, camera }: PartProps & { readonly camera: ViewCamera }) {
  const { nodes, selectedNode = null, onSelectNode, onMove, onConnect } = props;
  const focused = useSignal<string | null>(null);
  const keep = useKept();
  const shown = nodes.flatMap((node) => {
    const place = places.nodes.get(node.id);
    return node.isAbsent === true || place === undefined ? [] : [{ node, place }];
  });
  const ids = shown.map(({ node }) => node.id);
  const reached = [focused.value, selectedNode].find((id) => id !== null && ids.includes(id)) ?? ids[0];
  const onKeyDown = useLatest((event: KeyboardEvent, place: PlacedNode): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow !== undefined) onArrow(arrow, place, event.shiftKey);
    else if (event.key === 'c' && onConnect !== undefined) editing.begin(place.id);
    else if (event.key === 'Escape' && editing.edge.value !== null) editing.begin(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  function onArrow(arrow: Point, place: PlacedNode, isMove: boolean): void {
    if (isMove) return onMove?.(place.id, { x: place.x + arrow.x * STEP, y: place.y + arrow.y * STEP });
    const next = neighbourOf(
      place,
      shown.map((each) => each.place),
      arrow,
    );
    if (next === null) return;
    camera.reveal(next);
    controlOf(camera.view.current, next.id)?.focus({ preventScroll: true });
  }
  const onFocus = useLatest((element: HTMLElement, place: PlacedNode) => {
    focused.value = place.id;
    if (element.matches(':focus-visible')) camera.reveal(place);
  });
  const onClick = useLatest((id: string) => (editing.edge.value === null ? onSelectNode?.(id) : editing.end(id)));
  const drag = useLatest((event: PointerEvent, place: PlacedNode) => editing.dragNode(event, place, camera));
  const draw = useLatest((event: PointerEvent, { id }: PlacedNode) => editing.drawEdge(event, id, camera));
  const [onDrag, onDraw] = [onMove && drag, onConnect && draw];
  const isEdited = [onDrag !== undefined, onDraw !== undefined];
  return shown.map(({ node, place }) => {
    const box = {
      ...{ node, place, onFocus, onClick, onKeyDown, onDrag, onDraw },
      isSelected: selectedNode === node.id,
      isLinking: editing.edge.value?.source === node.id,
      isReached: reached === node.id,
    };
    return keep(node.id, [box, isEdited], () => <NodeBox key={node.id} {...box} />);
  });
}

/** The same function each time it is drawn, which does what it was given last. */
function useLatest<A extends readonly unknown[]>(act: (...given: A) => void): (...given: A) => void {
  const latest = useRef(act);
  latest.current = act;
  return useCallback((...given: A) => latest.current(...given), []);
}

/**
 * Gives a part as it was drawn before while its values are the same: it is not drawn again, nor compared. A step along a
 * run changes two nodes of hundreds. Functions among the values have to be the same each time, and do not count.
 */
function useKept(): (name: string, values: object, draw: () => VNode) => VNode {
  const kept = useRef(new Map<string, { readonly text: string; readonly drawn: VNode }>());
  return (name, values, draw) => {
    const text = JSON.stringify(values);
    const known = kept.current.get(name);
    if (known?.text === text) return known.drawn;
    const drawn = draw();
    kept.current.set(name, { text, drawn });
    return drawn;
  };
}

/** How far a key moves a node. */
const STEP = 16;

function controlOf(view: HTMLElement | null, id: string): HTMLElement | null {
  const all = [...(view?.querySelectorAll<HTMLElement>('[data-node]') ?? [])];
  return all.find((each) => each.dataset['node'] === id)?.querySelector('button') ?? null;
}

/** Places that change only with what is drawn, not with its marks. */
function usePlaces({ nodes, edges, direction = 'down', layoutGraph }: GraphProps, { drag }: GraphEditing): Places {
  const moved = drag.value;
  const sized = nodes.map((node) => {
    const position = moved?.id === node.id ? moved.position : (node.position ?? null);
    return { ...sizeOf(node), position };
  });
  const spaced = edges.map(spaceOf);
  return useMemo(
    () => placesOf(sized, spaced, { direction, layoutGraph }),
    [JSON.stringify([sized, spaced, direction])],
  );
}
