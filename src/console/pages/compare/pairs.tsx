/** Pairs of executions: equal ones in one line, others side by side. */
import { useSignal } from '@preact/signals';
import type { Analysis, NodeOutput, NodeRole } from '../../../generated/schemas.js';
import { lengthText } from '../../record/durations.js';
import type { ComparedPair, Similarity } from '../../record/compare.js';
import type { Execution } from '../../record/executions.js';
import { labelsByLetter, lastSeqOf, scoreOf } from '../../record/executions.js';
import { countOf } from '../../record/counts.js';
import { executionText, membersText } from '../../record/event-text.js';
import { stepUsageText } from '../../record/usage-text.js';
import { pageUrl } from '../../shell/router.js';
import type { Tone } from '../../ui/controls.js';
import { Badge } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import { DraftDiff } from '../../ui/text-diff.js';
import { withNames } from '../run/deliberation/with-names.js';
import type { RunStore } from '../run/store.js';

interface Sides {
  readonly left: RunStore;
  readonly right: RunStore;
}

export function Same({
  pairs,
  isFirst,
  ...sides
}: Sides & { readonly pairs: readonly ComparedPair[]; readonly isFirst: boolean }) {
  const isOpen = useSignal(false);
  return (
    <div class="same stack">
      <button type="button" class="fold" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        {isFirst ? 'First ' : ''}
        {countOf(pairs.length, 'step')} equal
      </button>
      {isOpen.value &&
        pairs.map((pair) => <Other key={`${pair.node} ${pair.occurrence}`} pair={pair} isOpen={false} {...sides} />)}
    </div>
  );
}

const SIMILARITIES: Readonly<Record<Similarity, readonly [text: string, tone: Tone]>> = {
  same: ['equal', 'plain'],
  differs: ['different', 'wait'],
  left: ['only in A', 'bad'],
  right: ['only in B', 'good'],
};

/** @param isOpen whether the texts are open at first */
export function Other({
  pair: { node, occurrence, left: one, right: other, similarity },
  isOpen,
  left,
  right,
}: Sides & { readonly pair: ComparedPair; readonly isOpen: boolean }) {
  const isShown = useSignal(isOpen);
  const [text, tone] = SIMILARITIES[similarity];
  const label = one?.label ?? other?.label ?? node;
  return (
    <article class="card pair" aria-label={`${label}, execution ${occurrence}`}>
      <div class="row spread">
        <h3 class="break">
          {label} <span class="muted small">execution {occurrence}</span>
        </h3>
        <Badge tone={tone}>{text}</Badge>
      </div>
      <div class="sides">
        <Side name="A" run={left} execution={one} />
        {/* The parent's record holds the inherited steps of a fork. */}
        <Side name="B" run={one === other ? left : right} execution={other} />
      </div>
      {(textOf(one) ?? textOf(other)) !== null && (
        <details open={isShown.value} onToggle={(event) => (isShown.value = event.currentTarget.open)}>
          <summary>{WRITTEN[(one ?? other)?.role ?? 'agent']}</summary>
          {isShown.value && <Written {...{ one, other }} />}
        </details>
      )}
    </article>
  );
}

const WRITTEN: Readonly<Record<NodeRole, string>> = {
  agent: 'Draft',
  critic: 'Feedback',
  panel: 'Answers',
  rank: 'Comments',
  judge: 'Analysis',
  format: 'Output',
  council: 'Draft',
};

/** The changes from A's text to B's, or the only text. */
function Written({ one, other }: { readonly one: Execution | null; readonly other: Execution | null }) {
  const [before, after] = [textOf(one), textOf(other)];
  if (before === null || after === null || before === after) return <Prose text={before ?? after ?? ''} />;
  return <DraftDiff {...{ before, after }} />;
}

/** The draft or feedback of an execution or the answers of its members, or null without a text. */
function textOf(execution: Execution | null): string | null {
  if (execution === null) return null;
  const { output, panel } = execution;
  if (panel !== null) return answersOf(panel);
  const value = output?.value;
  if (value === undefined) return null;
  if ('analysis' in value) return analysisText(value.analysis, labelsByLetter(execution));
  return textOfOutput(value);
}

function answersOf({ members }: NonNullable<Execution['panel']>): string | null {
  const texts = members.flatMap(({ label, output }) => {
    const text = output === null ? null : textOfOutput(output.value);
    return text === null ? [] : [`## ${label}\n${text}`];
  });
  return texts.length === 0 ? null : texts.join('\n\n');
}

/** A judge's comparison as a text, with the labels of members in place of letters. */
function analysisText(analysis: Analysis, labels: ReadonlyMap<string, string>): string {
  const named = (text: string): string => withNames(text, labels);
  const who = (letters: readonly string[]): string => letters.map((each) => labels.get(each) ?? each).join(', ');
  const parts: readonly (readonly [title: string, items: readonly string[]])[] = [
    ['Consensus', analysis.consensus.map(named)],
    [
      'Contradictions',
      analysis.contradictions.flatMap(({ topic, stances }) => [
        named(topic),
        ...stances.map(({ response, stance }) => `${who([response])}: ${named(stance)}`),
      ]),
    ],
    [
      'Partial coverage',
      analysis.partial_coverage.map(({ point, responses }) => `${named(point)} (${who(responses)})`),
    ],
    [
      'Unique insights',
      analysis.unique_insights.map(({ insight, response }) => `${who([response])}: ${named(insight)}`),
    ],
    ['Blind spots', analysis.blind_spots.map(named)],
  ];
  return parts.map(([title, items]) => [`## ${title}`, ...items.map((item) => `- ${item}`)].join('\n')).join('\n\n');
}

function textOfOutput(value: NodeOutput): string | null {
  if ('draft' in value) return value.draft;
  if ('answer' in value) return value.answer;
  if ('feedback' in value) return value.feedback;
  return 'comment' in value ? value.comment : null;
}

interface SideProps {
  readonly name: string;
  /** The run whose record holds the execution. */
  readonly run: RunStore;
  readonly execution: Execution | null;
}

function Side({ name, run, execution }: SideProps) {
  if (execution === null) return <p class="muted small">{name}: not executed</p>;
  const at = lastSeqOf(execution);
  const decision = decisionOn(execution, run);
  return (
    <div class="stack small">
      <p>
        <strong>{name}</strong>{' '}
        {at === null ? 'before its fork' : <a href={pageUrl(['runs', run.source.id], { at })}>event {at}</a>}
      </p>
      <p class="break">{factsOf(execution, run).join(' · ')}</p>
      {decision !== null && <p class="muted break">{decision}</p>}
    </div>
  );
}

function factsOf(execution: Execution, run: RunStore): readonly string[] {
  const { state, durationMs, routes, panel } = execution;
  const score = scoreOf(execution);
  const next = routes.at(-1)?.next ?? [];
  const usage = stepUsageText(execution);
  return [
    ...(score === null ? [] : [`score ${score}`]),
    ...(panel === null ? [] : [membersText(panel.members.map((each) => each.state))]),
    ...(state === 'done' ? [] : [executionText(state)]),
    ...(next.length === 0 ? [] : [`to ${next.map((node) => run.labelOf(node)).join(', ')}`]),
    ...(usage === null ? [] : [usage]),
    ...(durationMs === null ? [] : [lengthText(durationMs)]),
  ];
}

/** The decision at the pause before it, or null if there was none. */
function decisionOn({ pause: number }: Execution, run: RunStore): string | null {
  const { trace: executions, record } = run;
  const pause = number === null ? undefined : executions.value?.pauses.find((each) => each.number === number);
  const event = record.events[pause?.decision?.seq ?? -1];
  return event === undefined ? null : run.textOf(event);
}
