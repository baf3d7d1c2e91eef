/** A pause for the budget on the page of a run: approve with larger limits, or reject. */
import { useSignal } from '@preact/signals';
import type { BudgetStatus } from '../../../generated/schemas.js';
import type { LimitFaults } from '../../record/budget.js';
import { limitsIn, suggestedLimits } from '../../record/budget.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { BudgetPause } from '../../ui/budget-fields.js';
import { Button } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import type { DecidedPause } from './decision.js';
import { CommentBox, useDecision } from './decision.js';

interface BudgetDecisionProps {
  readonly pause: DecidedPause;
  readonly mayDecide: boolean;
}

/** Loads what the next calls need, which the record does not hold. */
export function BudgetDecision({ pause: decided, mayDecide }: BudgetDecisionProps) {
  const { runId, seq } = decided.pause;
  const loaded = useResource(`budget ${runId} ${seq}`, async (signal) => {
    return (await council.run(runId).pause({ signal }))?.state.budget ?? null;
  });
  return (
    <WhenLoaded of={loaded} what="the budget" lines={2}>
      {(status) => status !== null && <Loaded decided={decided} status={status} mayDecide={mayDecide} />}
    </WhenLoaded>
  );
}

interface LoadedProps {
  readonly decided: DecidedPause;
  readonly status: BudgetStatus;
  readonly mayDecide: boolean;
}

function Loaded({ decided, status, mayDecide }: LoadedProps) {
  const { pause } = decided;
  const { comment, isBusy, send } = useDecision(decided);
  const typed = useSignal(suggestedLimits(status));
  const faults = useSignal<LimitFaults>({});
  function approve(): void {
    const { limits: budget, faults: found } = limitsIn(typed.value);
    faults.value = found;
    if (Object.keys(found).length === 0) void send('Approved', (options) => pause.approve({ ...options, budget }));
  }
  return (
    <div class="stack">
      <BudgetPause
        status={status}
        mayDecide={mayDecide}
        typed={typed.value}
        faults={faults.value}
        onType={(change) => (typed.value = { ...typed.value, ...change })}
      />
      {mayDecide && (
        <>
          <CommentBox comment={comment} />
          <div class="row">
            <Button tone="primary" disabled={isBusy} onClick={approve}>
              Approve
            </Button>
            <Button tone="danger" disabled={isBusy} onClick={() => void send('Rejected', (o) => pause.reject(o))}>
              Reject
            </Button>
            <a class="small" href={pageUrl(['inbox'], { run: pause.runId })}>
              Open in inbox
            </a>
          </div>
        </>
      )}
    </div>
  );
}
