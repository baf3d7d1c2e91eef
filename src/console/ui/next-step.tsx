/** What follows an approval: the members that start, with model, tools, prompt and the most that it may cost. */
import { costText, dollarText, unpricedModels } from '../../run/cost-text.js';
import type { NextCalls, NextNode, RunUsage } from '../../generated/schemas.js';
import { countOf } from '../record/counts.js';
import { ROLES, shownRole } from '../record/page-words.js';
import type { Fact } from './controls.js';
import { Facts } from './controls.js';
import { PromptFold, toolsText } from './member-setup.js';

export function NextStep({ next }: { readonly next: NextCalls }) {
  if (next.nodes.length === 0) return null;
  return (
    <section class="next-step stack" aria-label="Next step">
      {next.nodes.map((node) => (
        <NextMember key={node.node} node={node} />
      ))}
      <Facts
        look="next-costs small"
        facts={[
          ['This step', worstText(next.reserved)],
          ['Spent so far', spentText(next.usage)],
        ]}
      />
    </section>
  );
}

function NextMember({ node: { label, role, calls } }: { readonly node: NextNode }) {
  const [first] = calls;
  const isPanel = first?.member !== undefined;
  const facts: readonly Fact[] = [
    ['Role', ROLES[shownRole(role, isPanel)]],
    [calls.length > 1 ? 'Models' : 'Model', <code>{[...new Set(calls.map(({ model }) => model))].join(', ')}</code>],
    ['Tools', toolsText([...new Set(calls.flatMap(({ tools }) => tools))])],
  ];
  return (
    <div class="next-member stack close">
      <h3>Next: {label}</h3>
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
