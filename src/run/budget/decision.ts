/** What a human's decision on a pause means for the budget of a run. */
import type { BudgetChange, BudgetTotals, GateAction } from '../../generated/schemas.js';
import { unpricedText } from '../../graph/models-asked.js';
import { needText } from './budget-text.js';
import { exceededLimits, reservationFor, unpricedModel } from './spending.js';
import { neededAfterPause } from '../frontier/start.js';
import { BudgetRefused } from '../errors.js';
import type { DecisionContext } from '../pending-events.js';
import type { RunPause, RunState } from '../state.js';

interface BudgetDecision {
  readonly action: GateAction;
  /** The new totals; what is absent stays. */
  readonly budget?: BudgetChange | undefined;
}

/**
 * The run's budget after a decision, or null if the decision does not change it.
 *
 * @throws {BudgetRefused} at a pause for the budget when the decision modifies the state, or approves without a budget or
 * with one too small; at another pause when it holds a budget
 */
export function budgetAfter(
  run: RunState,
  pause: Pick<RunPause, 'reason' | 'nextNodes'>,
  { decision, context }: { readonly decision: BudgetDecision; readonly context: DecisionContext },
): BudgetTotals | null {
  const { runId, spending } = run;
  if (pause.reason !== 'budget') {
    if (decision.budget === undefined) return null;
    throw new BudgetRefused({ runId, loc: ['budget'], reason: 'Only a pause for the budget takes a budget' });
  }
  if (decision.action === 'reject' || spending === null) return null;
  if (decision.action === 'modify') {
    const reason = 'Approve a pause for the budget with a larger budget, or reject it';
    throw new BudgetRefused({ runId, loc: ['action'], reason });
  }
  const sent = decision.budget ?? {};
  const { usd, tokens } = { ...spending.budget, ...sent };
  const totals = { usd, tokens };
  assertPriced(run, sent, context);
  const needed = neededAfterPause({ ...run, spending }, pause.nextNodes, context);
  const exceeded = exceededLimits(totals, needed);
  const isMissing = sent.usd === undefined && sent.tokens === undefined;
  if (!isMissing && exceeded.length === 0) return totals;
  throw new BudgetRefused({
    runId,
    loc: ['budget', ...(isMissing ? [] : exceeded.slice(0, 1))],
    reason: needText(totals, reservationFor(needed)),
  });
}

/** Refuses a new limit in US dollars if the run may call a model without a price, as a start does. */
function assertPriced({ runId, plan }: RunState, { usd }: BudgetChange, context: DecisionContext): void {
  const model = usd === undefined ? null : unpricedModel(plan.graph, context);
  if (model === null) return;
  throw new BudgetRefused({ runId, loc: ['budget', 'usd'], reason: unpricedText(model) });
}
