/** The steps of a run with their tokens and costs, and the sums of each member. */
import { lengthText } from '../../record/durations.js';
import { executionText } from '../../record/event-text.js';
import type { Execution } from '../../record/executions.js';
import { scoreOf } from '../../record/executions.js';
import type { StepUsage } from '../../record/attempt-figures.js';
import { costCell, tokenCell } from '../../record/usage-text.js';
import { Windowed } from '../../ui/windowed.js';
import { sumOfDollars } from '../../../system/dollars.js';
import type { RunStore } from './store.js';

interface StepsProps {
  readonly store: RunStore;
}

const ROW_PX = 36;

/** The steps up to the event shown. */
export function Steps({ store }: StepsProps) {
  const { executions = [] } = store.trace.value ?? {};
  if (executions.length === 0) return <p class="muted">No step has started.</p>;
  const selected = store.selectedStep.value;
  const current = executions.findIndex(({ step }) => step === selected);
  return (
    <div class="stack">
      <div class="steps-list">
        <div class="step-row small muted" aria-hidden="true">
          {['Step', 'Member', 'Result', 'Duration', 'Tokens', 'Cost'].map((name) => (
            <span key={name}>{name}</span>
          ))}
        </div>
        <Windowed
          label="Steps"
          count={executions.length}
          rowHeight={ROW_PX}
          current={current < 0 ? null : current}
          row={(index) => {
            const execution = executions[index];
            return execution === undefined ? null : <Row {...{ store, execution }} isSelected={index === current} />;
          }}
        />
      </div>
      <ByMember executions={executions} />
    </div>
  );
}

interface RowProps extends StepsProps {
  readonly execution: Execution;
  readonly isSelected: boolean;
}

function Row({ store, execution, isSelected }: RowProps) {
  const { step, label, durationMs } = execution;
  return (
    <button
      type="button"
      class="step-row"
      aria-current={isSelected ? 'true' : undefined}
      onClick={() => store.select(isSelected ? null : step)}
    >
      <span class="numeric muted">{step}</span>
      <span class="clip">{label}</span>
      <span class="clip">{resultOf(execution)}</span>
      <span class="numeric">{durationMs === null ? '–' : lengthText(durationMs)}</span>
      <span class="numeric clip">{usageCell(execution, tokenCell)}</span>
      <span class="numeric clip">{usageCell(execution, ({ costUsd, unpriced }) => costCell(costUsd, unpriced))}</span>
    </button>
  );
}

function resultOf(execution: Execution): string {
  const { state, output, isInherited } = execution;
  const score = scoreOf(execution);
  if (score !== null) return `score ${score}`;
  if (isInherited) return 'inherited';
  return output !== null && 'draft' in output.value ? 'draft' : executionText(state);
}

/** What an ended step used; of one that has not ended it is open. */
function usageCell({ usage, state, isInherited }: Execution, cell: (usage: StepUsage) => string): string {
  if (usage !== null) return cell(usage);
  return isInherited || (state !== 'done' && state !== 'failed') ? '–' : 'not reported';
}

interface MemberSum extends StepUsage {
  readonly label: string;
  readonly steps: number;
}

/** The sums of the members that the steps belong to. A cost that is unknown for one step is missing in the sum. */
function ByMember({ executions }: { readonly executions: readonly Execution[] }) {
  const sums = sumsOf(executions);
  return (
    <section class="stack close" aria-labelledby="by-member">
      <h2 id="by-member">By member</h2>
      <div class="scrolling" tabIndex={0} role="group" aria-label="Cost by member">
        <table class="table small">
          <thead>
            <tr>
              {['Member', 'Steps', 'Tokens', 'Cost'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sums.map(({ label, steps, ...usage }) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td class="numeric">{steps}</td>
                <td class="numeric">{tokenCell(usage)}</td>
                <td class="numeric">{costCell(usage.costUsd, usage.unpriced)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function sumsOf(executions: readonly Execution[]): readonly MemberSum[] {
  const sums = new Map<string, MemberSum>();
  for (const { node, label, usage } of executions) {
    const before = sums.get(node) ?? { label, steps: 0, inputTokens: null, outputTokens: null, costUsd: null };
    sums.set(node, {
      label,
      steps: before.steps + 1,
      inputTokens: plus(before.inputTokens, usage?.inputTokens),
      outputTokens: plus(before.outputTokens, usage?.outputTokens),
      costUsd: sumOfKnown([before.costUsd, usage?.costUsd ?? null]),
      unpriced: [...new Set([...(before.unpriced ?? []), ...(usage?.unpriced ?? [])])],
    });
  }
  return [...sums.values()];
}

function sumOfKnown(amounts: readonly (number | null)[]): number | null {
  const known = amounts.filter((each) => each !== null);
  return known.length === 0 ? null : sumOfDollars(known);
}

function plus(sum: number | null, amount: number | null | undefined): number | null {
  return amount === null || amount === undefined ? sum : (sum ?? 0) + amount;
}
