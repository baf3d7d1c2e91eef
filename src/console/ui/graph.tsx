/** A graph that users can zoom, walk through by keyboard, and edit if the page allows it. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { Direction, LayoutGraph, PlacedNode, Places, Point } from '../record/placement.js';
import type { CameraState, ViewCamera } from './camera.js';
import { ARROWS, useCamera } from './camera.js';
import { Button } from './controls.js';
import type { GraphEditing } from './graph-editing.js';
import { useGraphEditing } from './graph-editing.js';
import { EdgeLabel, EdgeLine, LineInWork, NodeBox } from './graph-parts.js';
import type { GraphEdgeShown, GraphNodeShown } from './graph-shown.js';
import { edgeText } from './graph-shown.js';
import { boundsOf, neighbourOf, placesOf, sizeOf, spaceOf } from './graph-geometry.js';

export type { GraphEdgeShown, GraphNodeShown } from './graph-shown.js';

export interface GraphProps {
  /** Its accessible name. */
  readonly name: string;
  readonly nodes: readonly GraphNodeShown[];
  readonly edges: readonly GraphEdgeShown[];
  readonly layoutGraph: LayoutGraph;
  readonly direction?: Direction;
  /** It gets longer while it is shown, so it starts at the left. */
  readonly grows?: boolean;
  /** The current node: shown first, and by a button. */
  readonly current?: string | null;
  /** The camera, for a caller that keeps it while the graph is not shown. */
  readonly camera?: CameraState;
  readonly selectedNode?: string | null;
  readonly selectedEdge?: string | null;
  /** Gets null for a click beside the nodes. */
  readonly onSelectNode?: (id: string | null) => void;
  readonly onSelectEdge?: (id: string) => void;
  /** The user moved a node, by dragging or by Shift and arrows. */
  readonly onMove?: (id: string, position: Point) => void;
  /** The user drew an edge, from a node's port or with the key C. */
  readonly onConnect?: (source: string, target: string) => void;
  /** A change of this number shows the initial view again. */
  readonly round?: number;
  /** More buttons. */
  readonly tools?: ComponentChildren;
}

/** The camera first shows a readable part, and then stays where the user moves it while the graph changes. */
export function Graph(props: GraphProps) {
  const { name, nodes, edges, onSelectNode, onMove, round = 0 } = props;
  const editing = useGraphEditing({ onMove, onConnect: props.onConnect });
  const places = usePlaces(props, editing);
  const drawing = useMemo(() => boundsOf(places), [places]);
  const current = places.nodes.get(props.current ?? '') ?? null;
  const [first = drawing] = places.nodes.values();
  const part = places.nodes.get(props.selectedNode ?? '') ?? current ?? first;
  const camera = useCamera({ drawing, camera: props.camera, grows: props.grows, part });
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
      <Tools {...{ camera, current }}>{props.tools}</Tools>
      <ul class="unseen" aria-label="Edges">
        {described.map(({ edge, words }) => (
          <li key={edge.id}>{words}</li>
        ))}
      </ul>
    </div>
  );
}

interface ToolsProps {
  readonly camera: ViewCamera;
  readonly current: PlacedNode | null;
  /** More buttons. */
  readonly children: ComponentChildren;
}

function Tools({ camera, current, children }: ToolsProps) {
  return (
    <div class="graph-tools" role="group" aria-label="View">
      {children}
      {current !== null && (
        <Button slim onClick={() => camera.reveal(current)}>
          Show current step
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
  );
}

function describedEdges(nodes: GraphProps['nodes'], edges: GraphProps['edges']): EdgesProps['described'] {
  const names = new Map(nodes.map(({ id, label }) => [id, label]));
  return edges.map((edge) => ({ edge, words: edgeText(edge, names) }));
}

/** Moves the drawing with the camera, without rendering it again. */
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
  const states = new Map(nodes.flatMap((node) => (node.isAbsent === true ? [] : [[node.id, node.state] as const])));
  const shown = described.flatMap(({ edge, words }) => {
    const way = places.edges.get(edge.id);
    if (way === undefined || !states.has(edge.source) || !states.has(edge.target)) return [];
    const isMoving = edge.isLastTaken === true && states.get(edge.target) === 'active';
    return [{ edge, way, words, isMoving, isSelected: selectedEdge === edge.id, onSelect: onSelectEdge }];
  });
  const { source = '', to = null } = editing.edge.value ?? {};
  const from = places.nodes.get(source);
  return (
    <>
      <svg class="graph-edges" aria-hidden="true">
        {shown.map((each) => (
          <EdgeLine key={each.edge.id} {...each} />
        ))}
        {from !== undefined && to !== null && <LineInWork from={from} to={to} />}
      </svg>
      {shown.map((each) => (
        <EdgeLabel key={each.edge.id} {...each} />
      ))}
    </>
  );
}

function Nodes({ props, places, editing, camera }: PartProps & { readonly camera: ViewCamera }) {
  const { nodes, selectedNode = null, onSelectNode, onMove, onConnect } = props;
  const focused = useSignal<string | null>(null);
  const shown = nodes.flatMap((node) => {
    const place = places.nodes.get(node.id);
    return node.isAbsent === true || place === undefined ? [] : [{ node, place }];
  });
  const ids = shown.map(({ node }) => node.id);
  const reached = [focused.value, selectedNode].find((id) => id !== null && ids.includes(id)) ?? ids[0];
  const onKeyDown = (event: KeyboardEvent, place: PlacedNode): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow !== undefined) onArrow(arrow, place, event.shiftKey);
    else if (event.key === 'c' && onConnect !== undefined) editing.begin(place.id);
    else if (event.key === 'Escape' && editing.edge.value !== null) editing.begin(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
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
  const onFocus = (element: HTMLElement, place: PlacedNode): void => {
    focused.value = place.id;
    if (element.matches(':focus-visible')) camera.reveal(place);
  };
  const onClick = (id: string): void => (editing.edge.value === null ? onSelectNode?.(id) : editing.end(id));
  const drag = (event: PointerEvent, place: PlacedNode): void => editing.dragNode(event, place, camera);
  const draw = (event: PointerEvent, { id }: PlacedNode): void => editing.drawEdge(event, id, camera);
  return shown.map(({ node, place }) => (
    <NodeBox
      key={node.id}
      {...{ node, place, onFocus, onClick, onKeyDown }}
      onDrag={onMove && drag}
      onDraw={onConnect && draw}
      isSelected={selectedNode === node.id}
      isLinking={editing.edge.value?.source === node.id}
      isReached={reached === node.id}
    />
  ));
}

/** How far a key moves a node, in pixels. */
const STEP = 16;

function controlOf(view: HTMLElement | null, id: string): HTMLElement | null {
  const all = [...(view?.querySelectorAll<HTMLElement>('[data-node]') ?? [])];
  return all.find((each) => each.dataset['node'] === id)?.querySelector('button') ?? null;
}

/** Positions, computed again only if nodes, edges or labels change, not states. */
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
