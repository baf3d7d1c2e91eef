/**
 * A chart as a Mermaid state diagram. A node's state stands for its region; between nodes the edges of the graph are
 * drawn.
 */
import type {
  ChartConfig,
  ChartState,
  Genealogy,
  GenealogyChild,
  GenealogyDecision,
  GenealogyDraft,
  GenealogyFailure,
  GenealogyFeedback,
  GenealogyOutcome,
  Graph,
} from '../generated/schemas.js';
import { present } from '../system/element.js';
import { clipped } from './digest.js';

/** Prefix of a transition's target outside the current state. */
const OUTSIDE = '#run.';

/** The text of the diagram, one statement per line. Names are keys of the chart, labels are data. */
export function chartDiagram({ initial, states }: ChartConfig, graph: Graph): string {
  const all = Object.entries(states);
  const lines = [
    `[*] --> ${initial}`,
    ...all.flatMap(([key, state]) => stateLines(key, state, graph)),
    ...all.flatMap(([key, state]) => transitionsOut(state).map(({ fact, target }) => `${key} --> ${target} : ${fact}`)),
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

/** The inside of a state without nodes. Omits states without transitions between them, such as `idle`. */
function innerLines({ initial, states = {} }: ChartState): readonly string[] {
  const transitions = Object.entries(states).flatMap(([key, { on = {} }]) =>
    Object.entries(on).flatMap(([fact, { target }]) =>
      target === undefined || target.startsWith(OUTSIDE) ? [] : [`${key} --> ${target} : ${fact}`],
    ),
  );
  if (transitions.length === 0) return [];
  const named = Object.entries(states).map(([key, state]) => nameLine(key, { ...state, description: key }));
  return [...named, `[*] --> ${initial}`, ...transitions];
}

function nodeLines(nodes: readonly (readonly [string, ChartState])[], { entry, edges }: Graph): readonly string[] {
  const keys = new Map(nodes.flatMap(([key, { meta }]) => (meta === undefined ? [] : [[meta.node, key] as const])));
  const keyOf = (node: string): string => keys.get(node) ?? '[*]';
  const sources = new Set(edges.map(({ source }) => source));
  const conditional = new Set(edges.flatMap(({ source, condition }) => (condition === null ? [] : [source])));
  return [
    ...nodes.map(([key, state]) => nameLine(key, state, memberText(state))),
    `[*] --> ${keyOf(entry)}`,
    ...edges.map(({ source, target, condition }) => {
      const when = condition ?? (conditional.has(source) ? 'otherwise' : '');
      return `${keyOf(source)} --> ${keyOf(target)}${described(mermaidText(when))}`;
    }),
    ...[...keys].flatMap(([node, key]) => (sources.has(node) ? [] : [`${key} --> [*]`])),
  ];
}

/** Transitions out of a state and out of the states inside it. */
function transitionsOut({
  on = {},
  states = {},
}: ChartState): readonly { readonly fact: string; readonly target: string }[] {
  const own = Object.entries(on).flatMap(([fact, { target = '' }]) =>
    target.startsWith(OUTSIDE) ? [{ fact, target: target.slice(OUTSIDE.length) }] : [],
  );
  return [...own, ...Object.values(states).flatMap(transitionsOut)];
}

/** The kind of a node, with the number of its members or its council, such as `panel of 4`. Empty for a node of one model. */
function memberText({ meta }: ChartState): string {
  const { role = 'agent', members, council } = meta ?? {};
  if (council !== undefined) return `council ${council}`;
  if (members !== undefined) return `${role === 'critic' ? 'jury' : role} of ${members}`;
  return role === 'agent' || role === 'critic' ? '' : role;
}

/** Marks the active state with a sign, because not every renderer colours nested states. */
function nameLine(key: string, { description = '', tags = [] }: ChartState, kind = ''): string {
  const label = mermaidText(description);
  const suffix = kind === '' ? '' : ` ${mermaidText(`(${kind})`)}`;
  return `state "${tags.length > 0 ? '▶ ' : ''}${label === '' ? key : label}${suffix}" as ${key}`;
}

function described(label: string): string {
  return label === '' ? '' : ` : ${label}`;
}

function indented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}

/**
 * A genealogy as a Mermaid flowchart: drafts as boxes, their parents as arrows. The names are generated, the labels are
 * data.
 */
export function genealogyDiagram(genealogy: Genealogy): string {
  const { drafts, feedback, decisions, failures, outcome } = genealogy;
  const draftsById = new Map(drafts.map((draft) => [draft.id, draft]));
  const scores = new Map(genealogy.scores.map(({ feedback: id, score }) => [id, score]));
  const lines = [
    'flowchart TD',
    ...parentLines(genealogy),
    ...drafts.flatMap((draft) => draftLines(draft, draftsById)),
    ...childrenLines(genealogy),
    ...feedback.flatMap((each) => feedbackLines(each, scores.get(each.id) ?? null)),
    ...decisions.flatMap(decisionLines),
    ...failures.map(failureLine),
    ...(outcome === null ? [] : outcomeLines(outcome)),
  ];
  return `${lines.join('\n')}\n`;
}

function parentLines({ parent, drafts, feedback }: Genealogy): readonly string[] {
  if (parent === null) return [];
  const { run_id: runId, at, reused_results: reused } = parent;
  const inherited = [...drafts, ...feedback].filter(({ kind }) => kind === 'inherited');
  return [
    box('parent', ['([', '])'], [`fork of ${mermaidText(runId)}`, `at ${at}, ${reused} results reused`]),
    ...inherited.map(({ id }) => `  parent -.-> ${nameOf(id)}`),
  ];
}

function draftLines(draft: GenealogyDraft, drafts: ReadonlyMap<string, GenealogyDraft>): readonly string[] {
  const { id, seq, kind, iteration, parents, first_line: line, characters, tools } = draft;
  const author = authorOf(draft);
  const passages = tools.reduce((sum, call) => sum + call.passages.length, 0);
  const head = `${seq} ${kind}${author}, iteration ${iteration}`;
  const measure = passages === 0 ? `${characters} characters` : `${characters} characters, ${passages} passages`;
  // Feedback for a parent draft is drawn at that draft.
  const drawn = new Set(parents.drafts.flatMap((each) => present(drafts.get(each), `draft ${each}`).parents.feedback));
  const added = parents.feedback.filter((each) => !drawn.has(each));
  return [
    box(nameOf(id), DRAFT_SHAPES[kind], [head, mermaidText(line), measure]),
    ...[...parents.drafts, ...added].map((parent) => `  ${nameOf(parent)} --> ${nameOf(id)}`),
  ];
}

/** A box for the runs of each step of a council, with an arrow to the draft that they gave. */
function childrenLines({ children = [], drafts }: Genealogy): readonly string[] {
  const steps = new Map<number, GenealogyChild[]>();
  for (const child of children) steps.set(child.step, [...(steps.get(child.step) ?? []), child]);
  return [...steps].flatMap(([step, runs]) => {
    const { node, seq } = present(runs[0], `runs of step ${step}`);
    const named = runs.slice(0, MAX_CHILDREN).map(({ index, title, id, status }) => {
      const name = title === undefined ? id : title;
      return `${index} ${mermaidText(name)}, ${status}`;
    });
    const more = runs.length > MAX_CHILDREN ? [`and ${runs.length - MAX_CHILDREN} more`] : [];
    const head = `${seq} ${mermaidText(node)}, ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}`;
    const draft = drafts.find((each) => each.kind === 'written' && each.step === step);
    return [
      box(`c${step}`, ['[[', ']]'], [head, ...named, ...more]),
      ...(draft === undefined ? [] : [`  c${step} -.-> ${nameOf(draft.id)}`]),
    ];
  });
}

function failureLine(failure: GenealogyFailure): string {
  const { seq, attempt, kind } = failure;
  const lines = [`${seq}${authorOf(failure)}`, `attempt ${attempt} failed, ${mermaidText(kind)}`];
  return box(`e${seq}`, ['>', ']'], lines);
}

/** The node and the member, each after a space. */
function authorOf({ node, member }: Pick<GenealogyDraft, 'node' | 'member'>): string {
  const of = [node, member].filter((each) => each !== undefined && each !== null);
  return of.map((each) => ` ${mermaidText(each)}`).join('');
}

const DRAFT_SHAPES: Readonly<Record<GenealogyDraft['kind'], Shape>> = {
  written: ['[', ']'],
  answer: ['[', ']'],
  joined: ['[[', ']]'],
  human: ['[/', '/]'],
  inherited: ['[(', ')]'],
};

function feedbackLines(feedback: GenealogyFeedback, score: number | null): readonly string[] {
  const { id, seq, kind, node, draft, first_line: line } = feedback;
  const author = node === null ? kind : mermaidText(node);
  const judged = score === null ? '' : `, score ${mermaidText(String(score))}`;
  return [
    box(nameOf(id), ['(', ')'], [`${seq} ${author}${judged}`, mermaidText(line)]),
    ...(draft === null ? [] : [`  ${nameOf(draft)} -.-> ${nameOf(id)}`]),
  ];
}

function decisionLines(decision: GenealogyDecision): readonly string[] {
  const { seq, action, actor, comment, by_deadline: isLate, votes, shown, changes, unapplied } = decision;
  const names = [...votes.map((vote) => vote.actor), actor].flatMap((each) =>
    each === null ? [] : [mermaidText(each)],
  );
  const by = isLate ? 'its deadline' : names.length === 0 ? 'a human' : names.join(', ');
  const fields = changes.map(({ field }) => mermaidText(field)).join(', ');
  const sent = unapplied === null ? '' : 'an override was sent and not applied';
  const id = `h${seq}`;
  const made = changes.flatMap(({ to }) => (Array.isArray(to) ? to : [to])).filter((to) => isOf(to, seq));
  return [
    box(id, ['{{', '}}'], [`${seq} ${action} by ${by}`, mermaidText(comment ?? ''), fields, sent]),
    ...(shown.draft === null ? [] : [`  ${nameOf(shown.draft)} -.-> ${id}`]),
    ...made.map((to) => `  ${id} --> ${nameOf(String(to))}`),
  ];
}

/** Whether a value set by a decision is a draft or feedback of that same event. */
function isOf(value: unknown, seq: number): boolean {
  return value === `d${seq}` || value === `f${seq}`;
}

function outcomeLines({ seq, status, final_draft: draft, kind, error }: GenealogyOutcome): readonly string[] {
  const why = status === 'completed' ? [] : [kind, error].flatMap((text) => (text === null ? [] : [mermaidText(text)]));
  return [
    box('outcome', ['([', '])'], [`${seq} ${status}`, ...why]),
    ...(draft === null ? [] : [`  ${nameOf(draft)} ==> outcome`]),
  ];
}

/** Most runs of a step that a diagram names. */
const MAX_CHILDREN = 10;

type Shape = readonly [open: string, close: string];

/** @param lines of text that mermaidText has encoded; empty ones are omitted */
function box(name: string, [open, close]: Shape, lines: readonly string[]): string {
  return `  ${name}${open}"${lines.filter((line) => line !== '').join('<br/>')}"${close}`;
}

/** An id in the form of a Mermaid name. */
function nameOf(id: string): string {
  return id.replace('.', '_');
}

/** Most code points of a label. */
const MAX_LABEL_CHARS = 60;

/** Characters that may be syntax for Mermaid or HTML: all but letters, digits and spaces. */
const SPECIAL = /[^\p{L}\p{N} ]/gu;
/** A word that Mermaid reads as a statement anywhere in a line. */
const STATEMENT = /d(?=irection)/gi;
/** Invisible characters, line ends and direction marks. */
const UNSEEN = /[\p{C}\p{Z}]+/gu;

/**
 * An untrusted text as part of a label that no parser takes for syntax: special characters as Mermaid's numeric
 * entity codes, white space and control characters as one space, a long text cut.
 */
export function mermaidText(text: string, maxChars = MAX_LABEL_CHARS): string {
  const line = clipped(text, 4 * maxChars)
    .replace(UNSEEN, ' ')
    .trim();
  const points = [...line];
  const shown = points.length <= maxChars ? line : `${points.slice(0, maxChars - 1).join('')}…`;
  return shown.replace(SPECIAL, encoded).replace(STATEMENT, encoded);
}

function encoded(character: string): string {
  return `#${character.codePointAt(0)};`;
}
