/** A genealogy as a Mermaid flowchart: drafts as boxes, what led to them as arrows. */
import type {
  Genealogy,
  GenealogyDecision,
  GenealogyDraft,
  GenealogyFeedback,
  GenealogyOutcome,
} from '../generated/schemas.js';
import { mermaidText } from './mermaid-text.js';

/** The text of the diagram, a statement a line. Names are ours, labels are data. */
export function genealogyDiagram(genealogy: Genealogy): string {
  const { drafts, feedback, decisions, failures, outcome } = genealogy;
  const lines = [
    'flowchart TD',
    ...parentLines(genealogy),
    ...drafts.flatMap((draft) => draftLines(draft, drafts)),
    ...feedback.flatMap((each) => feedbackLines(each, genealogy)),
    ...decisions.flatMap(decisionLines),
    ...failures.map(({ seq, node, attempt, kind }) =>
      box(`e${seq}`, ['>', ']'], [`${seq} ${mermaidText(node)}`, `attempt ${attempt} failed, ${mermaidText(kind)}`]),
    ),
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

function draftLines(draft: GenealogyDraft, drafts: readonly GenealogyDraft[]): readonly string[] {
  const { id, seq, kind, node, iteration, parents, first_line: line, characters, tools } = draft;
  const author = node === null ? '' : ` ${mermaidText(node)}`;
  const passages = tools.reduce((sum, call) => sum + call.passages.length, 0);
  const head = `${seq} ${kind}${author}, iteration ${iteration}`;
  const measure = passages === 0 ? `${characters} characters` : `${characters} characters, ${passages} passages`;
  const known = new Set(
    drafts.filter((each) => parents.drafts.includes(each.id)).flatMap((each) => each.parents.feedback),
  );
  // What a parent was told already is drawn there.
  const news = parents.feedback.filter((each) => !known.has(each));
  return [
    box(nameOf(id), DRAFT_SHAPES[kind], [head, mermaidText(line), measure]),
    ...[...parents.drafts, ...news].map((parent) => `  ${nameOf(parent)} --> ${nameOf(id)}`),
  ];
}

const DRAFT_SHAPES: Readonly<Record<GenealogyDraft['kind'], Shape>> = {
  written: ['[', ']'],
  joined: ['[[', ']]'],
  human: ['[/', '/]'],
  inherited: ['[(', ')]'],
};

function feedbackLines(feedback: GenealogyFeedback, { scores }: Genealogy): readonly string[] {
  const { id, seq, kind, node, draft, first_line: line } = feedback;
  const score = scores.find((each) => each.feedback === id)?.score ?? null;
  const author = node === null ? kind : mermaidText(node);
  const judged = score === null ? '' : `, score ${mermaidText(String(score))}`;
  return [
    box(nameOf(id), ['(', ')'], [`${seq} ${author}${judged}`, mermaidText(line)]),
    ...(draft === null ? [] : [`  ${nameOf(draft)} -.-> ${nameOf(id)}`]),
  ];
}

function decisionLines({ seq, action, shown, changes, unapplied }: GenealogyDecision): readonly string[] {
  const fields = changes.map(({ field }) => mermaidText(field)).join(', ');
  const sent = unapplied === null ? '' : 'an override was sent and not applied';
  const id = `h${seq}`;
  const made = changes.flatMap(({ to }) => (Array.isArray(to) ? to : [to])).filter((to) => isOf(to, seq));
  return [
    box(id, ['{{', '}}'], [`${seq} ${action} by a human`, fields, sent]),
    ...(shown.draft === null ? [] : [`  ${nameOf(shown.draft)} -.-> ${id}`]),
    ...made.map((to) => `  ${id} --> ${nameOf(String(to))}`),
  ];
}

/** Whether a value that a decision has set names what came with it. */
function isOf(value: unknown, seq: number): boolean {
  return value === `d${seq}` || value === `f${seq}`;
}

function outcomeLines({ seq, status, final_draft: draft, kind, error }: GenealogyOutcome): readonly string[] {
  const why = status === 'completed' ? [] : [mermaidText(kind ?? ''), mermaidText(error ?? '')];
  return [
    box('outcome', ['([', '])'], [`${seq} ${status}`, ...why]),
    ...(draft === null ? [] : [`  ${nameOf(draft)} ==> outcome`]),
  ];
}

type Shape = readonly [open: string, close: string];

/** @param lines of text as mermaidText gives it; empty ones are left out */
function box(name: string, [open, close]: Shape, lines: readonly string[]): string {
  return `  ${name}${open}"${lines.filter((line) => line !== '').join('<br/>')}"${close}`;
}

/** An id as Mermaid takes names. */
function nameOf(id: string): string {
  return id.replace('.', '_');
}
