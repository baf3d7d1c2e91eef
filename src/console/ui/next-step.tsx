/** What follows an approval: the members that start, with model, tools, prompt and the most that it may cost. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { costText, dollarText, unpricedModels } from '../../run/cost-text.js';
import type { NextCalls, NextNode, RunUsage } from '../../generated/schemas.js';
import { countOf } from '../record/counts.js';
import { ROLES, shownRole } from '../record/page-words.js';
import type { Fact } from './controls.js';
import { Facts } from './controls.js';
import { PromptFold, toolsText } from './member-setup.js';

/** Folded but for its cost on a phone, where it would stand between the user and the draft. */
export function NextStep({ next }: { readonly next: NextCalls }) {
  const { nodes } = next;
  if (nodes.length === 0) return null;
  return (
    <section class="next-step" aria-label="Next step">
      <WideOpen
        title={nodes.map(({ node, label }) => (
          <h3 key={node}>Next: {label}</h3>
        ))}
      >
        {nodes.map((node) => (
          <NextMember key={node.node} node={node} isNamed={nodes.length > 1} />
        ))}
        <Facts look="next-costs small" facts={[['Spent so far', spentText(next.usage)]]} />
      </WideOpen>
      <Facts look="next-costs small" facts={[['This step', worstText(next.reserved)]]} />
    </section>
  );
}

interface WideOpenProps {
  readonly title: ComponentChildren;
  readonly look?: string;
  readonly children: ComponentChildren;
}

/** A part that is open at first, but not on a phone. @param look CSS classes */
export function WideOpen({ title, look, children }: WideOpenProps) {
  const isOpen = useSignal(!window.matchMedia('(max-width: 640px)').matches);
  return (
    <details class={look} open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{title}</summary>
      <div class="stack">{children}</div>
    </details>
  );
}

interface NextMemberProps {
  readonly node: NextNode;
  readonly isNamed: boolean;
}

function NextMember({ node: { label, role, calls }, isNamed }: NextMemberProps) {
  const [first] = calls;
  const isPanel = first?.member !== undefined;
  const facts: readonly Fact[] = [
    ['Role', ROLES[shownRole(role, isPanel)]],
    [calls.length > 1 ? 'Models' : 'Model', <code>{[...new Set(calls.map(({ model }) => model))].join(', ')}</code>],
    ['Tools', toolsText([...new Set(calls.flatMap(({ tools }) => tools))])],
  ];
  return (
    <div class="next-member stack close">
      {isNamed && <h4>{label}</h4>}
      <Facts look="next-facts small" facts={facts} />
      {calls.map(({ member = '', member_label: name = member, system, prompt }) => (
        <PromptFold
          key={member}
          title={isPanel ? `Prompt for ${name}` : 'Prompt that is sent'}
          parts={[
            ['System', system],
            ['User', prompt],
          ]}
        />
      ))}
    </div>
  );
}

/** The most that a step may cost, such as `at most $0.012, 9,000 tokens`. */
function worstText({ usd, tokens }: NextCalls['reserved']): string {
  const most = `${tokens.toLocaleString('en')} tokens`;
  return usd === null ? `at most ${most}, without a price` : `at most ${dollarText(usd)}, ${most}`;
}

/** The cost of a run so far. */
function spentText(usage: RunUsage | null): string {
  if (usage === null) return 'not reported';
  const { calls, cost_usd: costUsd, by_model: models } = usage;
  if (calls === 0) return 'nothing, no calls yet';
  const used = models.map(({ model, input_tokens: inputTokens, output_tokens: outputTokens, cost_usd }) => {
    return { model, inputTokens, outputTokens, costUsd: cost_usd };
  });
  const unpriced = unpricedModels(used);
  const cost = costUsd === null && unpriced.length === 0 ? 'not reported' : costText(costUsd, unpriced);
  return `${cost}, ${countOf(calls, 'call')}`;
}
