/** A chart as a Mermaid state diagram. A node's state stands for its region; between nodes the edges of the graph are drawn. */
import type { ChartConfig, ChartState, Graph } from '../generated/schemas.js';
import { mermaidText } from './mermaid-text.js';

/** How the chart tells a state outside the one that a transition leaves. */
const OUTSIDE = '#run.';

/** The text of the diagram, a statement a line. Names are keys of the chart, labels are data. */
export function chartDiagram({ initial, states }: ChartConfig, graph: Graph): string {
  const all = Object.entries(states);
  const lines = [
    `[*] --> ${initial}`,
    ...all.flatMap(([key, state]) => stateLines(key, state, graph)),
    ...all.flatMap(([key, state]) => waysOut(state).map(({ fact, target }) => `${key} --> ${target} : ${fact}`)),
    ...all.flatMap(([key, { type }]) => (type === 'final' ? [`${key} --> [*]`] : [])),
  ];
  return ['stateDiagram-v2', ...indented(lines), ''].join('\n');
}

function stateLines(key: string, state: ChartState, graph: Graph): readonly string[] {
  const parts = Object.entries(state.states ?? {});
  const nodes = parts.filter(([, { meta }]) => meta !== undefined);
  const inner = nodes.length > 0 ? nodeLines(nodes, graph) : innerLines(state);
  const named = nameLine(key, { ...state, description: key });
  return inner.length === 0 ? [named] : [`${named} {`, ...indented(inner), '}'];
}

/** What happens inside a state that has no nodes; states that nothing leads between, such as `idle`, are not shown. */
function innerLines({ initial, states = {} }: ChartState): readonly string[] {
  const ways = Object.entries(states).flatMap(([key, { on = {} }]) =>
    Object.entries(on).flatMap(([fact, { target }]) =>
      target === undefined || target.startsWith(OUTSIDE) ? [] : [`${key} --> ${target} : ${fact}`],
    ),
  );
  if (ways.length === 0) return [];
  const named = Object.entries(states).map(([key, state]) => nameLine(key, { ...state, description: key }));
  return [...named, `[*] --> ${initial}`, ...ways];
}

function nodeLines(nodes: readonly (readonly [string, ChartState])[], { entry, edges }: Graph): readonly string[] {
  const keys = new Map(nodes.map(([key, { meta }]) => [meta?.node ?? '', key]));
  const keyOf = (node: string): string => keys.get(node) ?? '[*]';
  const sources = new Set(edges.map(({ source }) => source));
  const conditional = new Set(edges.flatMap(({ source, condition }) => (condition === null ? [] : [source])));
  return [
    ...nodes.map(([key, state]) => nameLine(key, state)),
    `[*] --> ${keyOf(entry)}`,
    ...edges.map(({ source, target, condition }) => {
      const when = condition ?? (conditional.has(source) ? 'otherwise' : '');
      return `${keyOf(source)} --> ${keyOf(target)}${described(mermaidText(when))}`;
    }),
    ...[...keys].flatMap(([node, key]) => (sources.has(node) ? [] : [`${key} --> [*]`])),
  ];
}

/** Transitions out of a state and of what it holds. */
function waysOut({ on = {}, states = {} }: ChartState): readonly { readonly fact: string; readonly target: string }[] {
  const own = Object.entries(on).flatMap(([fact, { target = '' }]) =>
    target.startsWith(OUTSIDE) ? [{ fact, target: target.slice(OUTSIDE.length) }] : [],
  );
  return [...own, ...Object.values(states).flatMap(waysOut)];
}

/** Where the run stands is said in words too: not everything that draws diagrams colours states inside others. */
function nameLine(key: string, { description = '', tags = [] }: ChartState): string {
  const label = mermaidText(description);
  return `state "${tags.length > 0 ? '▶ ' : ''}${label === '' ? key : label}" as ${key}`;
}

function described(label: string): string {
  return label === '' ? '' : ` : ${label}`;
}

function indented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}
