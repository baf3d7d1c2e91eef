/** The graph of a draft, editable by mouse and keyboard, and the list of its problems. */
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { LayoutGraph } from '../../record/placement.js';
import { countOf } from '../../record/counts.js';
import { graphLayout, useChunk } from '../../ui/chunks.js';
import { Badge, Button } from '../../ui/controls.js';
import { Graph } from '../../ui/graph.js';
import { WhenLoaded, errorText } from '../../ui/states.js';
import { withEdge, withNode, withPositions, withoutEdge, withoutNode } from './draft.js';
import type { Drawing } from './drawing.js';
import { drawingOf, drawnId, freePosition, laidOutPositions, partOf } from './drawing.js';
import { STARTER } from './starter.js';
import type { Finding } from './findings.js';
import type { Editor } from './store.js';

export function Canvas({ editor }: { readonly editor: Editor }) {
  const layout = useChunk(graphLayout);
  return (
    <WhenLoaded of={layout} what="the graph">
      {({ layoutGraph }) => <Drawn {...{ editor, layoutGraph }} />}
    </WhenLoaded>
  );
}

interface DrawnProps {
  readonly editor: Editor;
  readonly layoutGraph: LayoutGraph;
}

function Drawn({ editor, layoutGraph }: DrawnProps) {
  const [draft, roles, findings] = [editor.draft.value, editor.roles.value, editor.findings.value];
  const councils = editor.councils.value;
  const hasCouncils = draft.nodes.some(({ type }) => type === 'council');
  useEffect(() => {
    if (hasCouncils) editor.loadCouncils();
  }, [editor, hasCouncils]);
  const drawing = useMemo(
    () => drawingOf(draft, { roles, findings, councils, layoutGraph }),
    [draft, roles, findings, councils],
  );
  const selected = editor.selected.value;
  const selectedId = selected === null ? null : drawnId(selected);

  const round = useSignal(0);
  const { add, layOut, onKeyDown, ...changing } = changesOf({ editor, layoutGraph, round }, drawing);
  return (
    <div class={editor.isValid.value === true ? 'editor-canvas odd' : 'editor-canvas'} onKeyDown={onKeyDown}>
      <Graph
        name="Council graph"
        nodes={drawing.nodes}
        edges={drawing.edges}
        layoutGraph={layoutGraph}
        selectedNode={selectedId}
        selectedEdge={selectedId}
        onSelectNode={(id) => editor.select(id === null ? null : partOf(id))}
        onSelectEdge={(id) => editor.select(partOf(id))}
        {...(editor.mayEdit && changing)}
        round={round.value}
        tools={
          editor.mayEdit && (
            <>
              <Button slim onClick={add}>
                Add a member
              </Button>
              <Button slim onClick={layOut}>
                Lay out
              </Button>
            </>
          )
        }
      />
      {draft.nodes.length === 0 && editor.mayEdit && <EmptyCanvas {...{ editor, add }} />}
    </div>
  );
}

interface EditedDrawing extends DrawnProps {
  /** A change shows the initial view again. */
  readonly round: Signal<number>;
}

/** The edits of the graph. */
function changesOf({ editor, layoutGraph, round }: EditedDrawing, drawing: Drawing) {
  const [draft, selected] = [editor.draft.value, editor.selected.value];
  function add(): void {
    const near = selected?.kind === 'node' ? selected.at : null;
    editor.edit(withNode(draft, freePosition(draft, drawing, near)));
    editor.select({ kind: 'node', at: draft.nodes.length });
    editor.isNew.value = true;
    round.value += 1;
  }
  function layOut(): void {
    editor.edit(withPositions(draft, laidOutPositions(drawing, layoutGraph)));
    round.value += 1;
  }
  function remove(id: string | null): void {
    const part = id === null ? selected : partOf(id);
    if (part === null) return;
    editor.select(null);
    editor.edit(part.kind === 'node' ? withoutNode(draft, part.at) : withoutEdge(draft, part.at));
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (!editor.mayEdit || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'n') add();
    else if (event.key === 'Delete' || event.key === 'Backspace')
      remove(selected?.kind === 'edge' ? null : nodeAt(event.target));
    else return;
    event.preventDefault();
  }
  return {
    add,
    onKeyDown,
    layOut,
    onMove(id: string, spot: { readonly x: number; readonly y: number }): void {
      const { at } = partOf(id);
      editor.edit(withPositions(draft, new Map([...drawing.positions, [at, spot]])), `move ${at}`);
    },
    onConnect(source: string, target: string): void {
      const [from, to] = [draft.nodes[partOf(source).at], draft.nodes[partOf(target).at]];
      if (from === undefined || to === undefined) return;
      editor.edit(withEdge(draft, { source: from.id, target: to.id }));
      editor.select({ kind: 'edge', at: draft.edges.length });
    },
  };
}

function EmptyCanvas({ editor, add }: { readonly editor: Editor; readonly add: () => void }) {
  return (
    <div class="editor-begin">
      <h2>An empty council</h2>
      <div class="row">
        <Button tone="primary" onClick={add}>
          Add the first member
        </Button>
        <Button onClick={() => editor.edit(STARTER)}>Start with writer and critic</Button>
      </div>
    </div>
  );
}

/** The node that has the focus. */
function nodeAt(target: EventTarget | null): string | null {
  const place = target instanceof Element ? target.closest('[data-node]') : null;
  return place instanceof HTMLElement ? (place.dataset['node'] ?? null) : null;
}

/** Whether a run would start, and all errors and warnings, each with a button to its node or edge. */
export function Findings({ editor }: { readonly editor: Editor }) {
  const found = editor.findings.value;
  const selected = editor.selected.value;
  const isShownInPanel = (part: Finding['part']): boolean =>
    part !== null && part.kind === selected?.kind && part.at === selected.at;
  return (
    <section class="editor-findings stack close" aria-label="Problems">
      <div class="row" role="status">
        <Verdict editor={editor} />
      </div>
      {found.length > 0 && (
        <ul class="stack close">
          {found
            .filter(({ part }) => !isShownInPanel(part))
            .map((finding, index) => (
              <li key={index}>
                <FindingLine {...{ editor, finding }} />
              </li>
            ))}
        </ul>
      )}
    </section>
  );
}

/** Whether a run would start. */
function Verdict({ editor }: { readonly editor: Editor }) {
  const { length } = editor.findings.value;
  const fault = editor.checkFault.value;
  if (fault !== null) return <span class="small muted">Not checked: {errorText(fault)}</span>;
  const isValid = editor.isValid.value;
  if (isValid === null) return <Badge>{editor.mayEdit ? 'Checking' : 'Saved version'}</Badge>;
  if (!isValid) return <Badge tone="bad">Invalid: a run would fail</Badge>;
  if (length > 0) return <Badge tone="wait">Valid, with {countOf(length, 'warning')}</Badge>;
  return <Badge tone="good">Valid</Badge>;
}

function FindingLine({ editor, finding: { message, part } }: { readonly editor: Editor; readonly finding: Finding }) {
  const { nodes, edges } = editor.draft.value;
  const [node, edge] = part?.kind === 'node' ? [nodes[part.at], undefined] : [undefined, edges[part?.at ?? -1]];
  if (part === null || (node === undefined && edge === undefined)) return <span class="break">{message}</span>;
  const labelOf = (id = ''): string => nodes.find((each) => each.id === id)?.label ?? id;
  const name = edge === undefined ? labelOf(node?.id) : `${labelOf(edge.source)} → ${labelOf(edge.target)}`;
  return (
    <>
      <Button slim onClick={() => editor.select(part)}>
        <span class="clip">{name}</span>
      </Button>
      <span class="break">{message}</span>
    </>
  );
}
