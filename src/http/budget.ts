/** Budgets of runs in requests. */
import { brokenRules } from '../api/problems.js';
import { assertBudget } from '../api/validation.js';
import type { Budget, RunBudget, RunRequestedData } from '../generated/schemas.js';
import { unpricedText } from '../graph/models-asked.js';
import { unpricedModel } from '../run/budget/spending.js';
import { recordedBudget } from '../run/request.js';
import type { HttpContext } from './route.js';

/** The budget of a run: that of the request, else another. @throws {RequestRefused} 422 if it sets no limit */
export function budgetOf(sent: Budget | undefined, other?: Budget): RunBudget | undefined {
  assertBudget(sent);
  const budget = sent ?? other;
  return budget === undefined ? undefined : recordedBudget(budget);
}

/** Refuses a budget in US dollars for a run that may call a model without a price. @throws {RequestRefused} 422 */
export function assertPriced({ budget, graph }: RunRequestedData, { registry }: Pick<HttpContext, 'registry'>): void {
  const model = (budget?.usd ?? null) === null ? null : unpricedModel(graph, registry.decisionContext());
  if (model === null) return;
  throw brokenRules([{ loc: ['body', 'budget', 'usd'], msg: unpricedText(model), type: 'unpriced_model' }]);
}
