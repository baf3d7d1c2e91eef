/** The set-up of a member of a council, as the run froze it: role, model, tools, prompt, limits and its own members. */
import type { GraphMember, GraphNode } from '../../generated/schemas.js';
import { useSignal } from '@preact/signals';
import { countOf } from '../record/counts.js';
import { lengthText } from '../record/durations.js';
import { FOR_EACH, ROLES, shownRole } from '../record/page-words.js';
import type { Fact } from './controls.js';
import { Facts } from './controls.js';
import { LongText } from './long-text.js';

/** A tool as recorded, and its name on pages. */
const TOOLS: Readonly<Record<string, string>> = {
  webSearch: 'web search',
  pdfReader: 'PDF reader',
  'webSearch: unavailable': 'web search (not available)',
  'pdfReader: unavailable': 'PDF reader (not available)',
};

export function toolsText(tools: readonly string[]): string {
  return tools.length === 0 ? 'none' : tools.map((tool) => TOOLS[tool] ?? tool).join(', ');
}

export function MemberSetup({ node }: { readonly node: GraphNode }) {
  const { systemPrompt, members = [] } = node;
  return (
    <section class="member-setup stack close" aria-label={`Set-up of ${node.label}`}>
      <Facts facts={factsOf(node)} look="facts small" />
      {node.role !== 'council' && <PromptText text={systemPrompt} />}
      {node.topic !== undefined && <PromptFold title="Topic of its runs" parts={[[null, node.topic]]} />}
      {node.schema !== undefined && (
        <PromptFold title="JSON Schema" parts={[[null, JSON.stringify(node.schema, null, 2)]]} />
      )}
      {members.length > 0 && (
        <>
          <h4 class="small">{node.role === 'rank' ? 'Reviewers' : 'Members'}</h4>
          <ul class="stack close">
            {members.map((member) => (
              <li key={member.id}>
                <PanelMember member={member} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** @param node that runs another council */
function councilFacts({ role, council, forEach, maxParallel, onError }: GraphNode): readonly Fact[] {
  return known([
    ['Role', ROLES[role]],
    ['Council', council && `${council.name}, version ${council.version}`],
    ['Runs', forEach === undefined ? 'one' : `one for each of the draft’s ${FOR_EACH[forEach]}`],
    ['At a time', maxParallel],
    ['A failed run', onError === 'skip' ? 'is left out' : 'fails the member'],
  ]);
}

function factsOf(node: GraphNode): readonly Fact[] {
  if (node.role === 'council') return councilFacts(node);
  const { role, members = [], tools, fallbacks = [], maxOutputTokens, temperature } = node;
  const granted = [tools.webSearch && 'webSearch', tools.pdfReader && 'pdfReader'].filter((tool) => tool !== false);
  return known([
    ['Role', ROLES[shownRole(role, members.length > 0)]],
    ['Model', node.model ?? 'the model of the service'],
    ['Fallbacks', fallbacks.length > 0 && fallbacks.join(', ')],
    ['Tools', toolsText(granted)],
    ['Material', node.material === false && 'not in its prompt'],
    ['Temperature', temperature],
    ['Longest answer', maxOutputTokens !== undefined && countOf(maxOutputTokens, 'token')],
    ['Longest call', lengthText(node.timeoutMs)],
    ['Attempts', node.maxAttempts],
    ...panelFacts(node),
  ]);
}

function panelFacts({ members = [], quorum, graceMs, keep, aggregate }: GraphNode): readonly MaybeFact[] {
  return [
    ['Quorum', quorum !== undefined && `${quorum} of ${members.length}`],
    ['Wait for the others', graceMs !== undefined && lengthText(graceMs)],
    ['Answers kept', keep],
    ['Score', aggregate !== undefined && `${aggregate} of the members`],
  ];
}

type MaybeFact = readonly [name: string, value: string | number | false | undefined];

function known(facts: readonly MaybeFact[]): readonly Fact[] {
  return facts.filter(([, value]) => value !== undefined && value !== false);
}

function PanelMember({ member: { label, model, systemPrompt } }: { readonly member: GraphMember }) {
  return (
    <>
      <p class="small">
        <b>{label}</b> <span class="muted">{model ?? 'the model of the panel'}</span>
      </p>
      {systemPrompt !== undefined && <PromptText text={systemPrompt} />}
    </>
  );
}

function PromptText({ text }: { readonly text: string }) {
  if (text === '') return <p class="small muted">No system prompt.</p>;
  return <PromptFold title="System prompt" parts={[[null, text]]} />;
}

export interface PromptFoldProps {
  readonly title: string;
  /** Texts, each with its heading or null. */
  readonly parts: readonly (readonly [heading: string | null, text: string])[];
}

/** The exact texts of a prompt, rendered when the user opens them. */
export function PromptFold({ title, parts }: PromptFoldProps) {
  const isOpen = useSignal(false);
  const length = parts.reduce((sum, [, text]) => sum + text.length, 0);
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary class="small">
        {title}, {length.toLocaleString('en')} {length === 1 ? 'character' : 'characters'}
      </summary>
      {isOpen.value &&
        parts.map(([heading, text]) => (
          <div key={heading} class="stack tight">
            {heading !== null && <h4 class="small">{heading}</h4>}
            <LongText text={text} label={heading ?? title} />
          </div>
        ))}
    </details>
  );
}
