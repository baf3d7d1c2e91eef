/** Forks a run at the event shown: the changes, their cost, and the start. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { ForkRequest } from '../../../generated/schemas.js';
import type { TypedLimits } from '../../record/budget.js';
import { countOf } from '../../record/counts.js';
import { utf8Bytes } from '../../../graph/limits.js';
import { sizeOfMost } from '../../record/matter.js';
import { usageText } from '../../record/usage-text.js';
import { council } from '../../shell/council.js';
import { navigateFromHere, pageUrl } from '../../shell/router.js';
import { lockIfUnauthorized } from '../../shell/session.js';
import { toast } from '../../shell/toasts.js';
import { LimitFields } from '../../ui/budget-fields.js';
import { Button, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { DocumentChoice } from '../../ui/document-choice.js';
import { useResource } from '../../ui/resource.js';
import { SchemaField } from '../../ui/schema-field.js';
import { errorText } from '../../ui/states.js';
import { invalidNumbers } from '../inbox/edit.js';
import { StateFields } from '../inbox/state-fields.js';
import type { MatterFault } from '../runs/matter-fault.js';
import { matterFaultOf, textAt } from '../runs/matter-fault.js';
import type { ForkDraft } from './fork-draft.js';
import { budgetOf, changesOf, draftOf, limitFaults, matterFaults } from './fork-draft.js';
import type { RunStore } from './store.js';

export interface ForkDialogProps {
  readonly store: RunStore;
  /** The event to fork at. */
  readonly at: number;
  readonly onClose: () => void;
}

export function ForkDialog({ store, at, onClose }: ForkDialogProps) {
  const original = useMemo(() => draftOf(store.record, at), [store, at]);
  const draft = useSignal(original);
  const isBusy = useSignal(false);
  const fault = useSignal<string | null>(null);
  /** What the service refuses at a field. */
  const refused = useSignal<MatterFault | null>(null);
  const changes = changesOf(original, draft.value);
  const budget = budgetOf(original, draft.value, store.record);
  const faults = {
    ...invalidNumbers(draft.value),
    ...limitFaults(draft.value),
    ...matterFaults(original, draft.value),
  };
  const isReadable = Object.keys(faults).length === 0;
  const change = (fields: Partial<ForkDraft>): void => void (draft.value = { ...draft.value, ...fields });

  async function start(): Promise<void> {
    isBusy.value = true;
    fault.value = null;
    const go = navigateFromHere();
    try {
      const fork = await council.run(store.source.id).fork({ at, changes, budget });
      onClose();
      toast(`Forked the run at event ${at}`, 'good');
      go(pageUrl(['runs', fork.id]));
    } catch (error) {
      lockIfUnauthorized(error);
      fault.value = errorText(error);
    } finally {
      isBusy.value = false;
    }
  }

  return (
    <Dialog
      broad
      title={`Fork at event ${at}`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" disabled={isBusy.value || !isReadable} onClick={() => void start()}>
            Start fork
          </Button>
        </>
      }
    >
      <p class="muted">A new run continues from this event with your changes. This run does not change.</p>
      {isReadable && <Cost {...{ store, at, changes, budget }} onRefused={(found) => (refused.value = found)} />}
      <ForkFields draft={draft.value} refused={refused.value} {...{ original, change }} />
      {fault.value !== null && (
        <p class="notice bad break" role="alert">
          {fault.value}
        </p>
      )}
    </Dialog>
  );
}

interface FieldsProps {
  readonly draft: ForkDraft;
  readonly change: (fields: Partial<ForkDraft>) => void;
}

interface MatterProps extends FieldsProps {
  readonly original: ForkDraft;
  readonly refused: MatterFault | null;
}

function ForkFields({ draft, original, refused, change }: MatterProps) {
  const labelOf = (node: string): string => draft.nodes.find(({ id }) => id === node)?.label ?? node;
  return (
    <>
      <StateFields edit={draft} faults={invalidNumbers(draft)} labelOf={labelOf} onType={change} />
      <MatterOfFork {...{ draft, original, refused, change }} />
      <NodeFields {...{ draft, change }} />
      {draft.limits !== null && <BudgetOfFork {...{ draft, change }} limits={draft.limits} />}
      <TextBox
        label="Limit of steps"
        hint="The run fails beyond this number."
        inputMode="numeric"
        value={draft.bound}
        look="numeric"
        onType={(value) => change({ bound: value })}
      />
    </>
  );
}

/** Folded: few forks change them, and a material may be long. */
function MatterOfFork({ draft, original, refused, change }: MatterProps) {
  const isOpen = useSignal(false);
  useEffect(() => {
    if (refused !== null) isOpen.value = true;
  }, [refused]);
  const faults = matterFaults(original, draft);
  const bytes = useMemo(() => utf8Bytes(draft.material), [draft.material]);
  return (
    <details
      class="start-part"
      open={isOpen.value}
      onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}
    >
      <summary>Material, documents, exact output</summary>
      {isOpen.value && (
        <div class="stack">
          <TextBox
            label="Material"
            hint={sizeOfMost(bytes)}
            fault={faults.material ?? textAt(refused, 'material')}
            rows={6}
            spellcheck={false}
            value={draft.material}
            onType={(material) => change({ material })}
          />
          <DocumentChoice
            chosen={draft.documents}
            onChoose={(documents) => change({ documents })}
            without="The PDF reader searches all documents."
            fault={textAt(refused, 'documents')}
          />
          <SchemaField
            label="JSON Schema of the output"
            hint="The output of the fork is valid by this schema."
            fault={faults.schema ?? textAt(refused, 'output_schema')}
            value={draft.schema}
            onType={(schema) => change({ schema })}
          />
        </div>
      )}
    </details>
  );
}

const LIMIT_LABELS = { usd: 'Budget in US dollars', tokens: 'Budget in tokens' } as const;

function BudgetOfFork({ draft, limits, change }: FieldsProps & { readonly limits: TypedLimits }) {
  return (
    <fieldset class="fork-group">
      <legend>Budget</legend>
      <p class="small muted">The fork starts with nothing spent.</p>
      <LimitFields
        labels={LIMIT_LABELS}
        typed={limits}
        faults={limitFaults(draft)}
        onType={(typed) => change({ limits: { ...limits, ...typed } })}
      />
    </fieldset>
  );
}

function NodeFields({ draft: { nodes }, change }: FieldsProps) {
  return (
    <fieldset class="fork-group">
      <legend>Members</legend>
      {nodes.map((node, index) => {
        const put = (fields: Partial<typeof node>): void =>
          change({ nodes: nodes.with(index, { ...node, ...fields }) });
        return (
          <details key={node.id}>
            <summary>{node.label}</summary>
            <div class="stack">
              <TextBox
                label={`Prompt of ${node.label}`}
                rows={4}
                value={node.systemPrompt}
                onType={(value) => put({ systemPrompt: value })}
              />
              <TextBox
                label={`Model of ${node.label}`}
                hint={node.model === '' ? 'Default of the service' : undefined}
                value={node.model}
                look="mono"
                onType={(value) => put({ model: value })}
              />
            </div>
          </details>
        );
      })}
    </fieldset>
  );
}

interface CostProps {
  readonly store: RunStore;
  readonly at: number;
  readonly changes: ForkRequest['changes'];
  readonly budget: ForkRequest['budget'];
  /** Called with the fault of a field that the service refuses, or with null. */
  readonly onRefused: (fault: MatterFault | null) => void;
}

/** The cost from a dry run, or why the fork is refused unless that stands at a field. */
function Cost({ store, at, changes, budget, onRefused }: CostProps) {
  const { state } = useResource(JSON.stringify([store.source.id, at, changes, budget]), async (signal) => {
    await delay(300, signal);
    return await council.run(store.source.id).fork({ at, changes, budget }, { dryRun: true, signal });
  });
  const { value: found } = state;
  const refused = found.status === 'failed' ? matterFaultOf(found.error) : null;
  useEffect(() => onRefused(refused), [refused?.text]);
  const spent = store.record.snapshotAt(at)?.usage;
  return (
    <section class="fork-cost card sunken" aria-label="Cost" aria-live="polite">
      {found.status === 'loading' && <p class="muted">Computing the cost…</p>}
      {found.status === 'failed' && (
        <p class={refused === null ? 'fault' : 'muted'}>
          {refused === null ? errorText(found.error) : 'Correct the field below to see the cost.'}
        </p>
      )}
      {found.status === 'ready' && (
        <p>
          <strong>{countOf(found.value.reused_results, 'result')} reused</strong>, at least{' '}
          <strong>{countOf(found.value.new_calls_at_least, 'new call')}</strong>
          {found.value.next_nodes.length === 0
            ? '. The run ends at once.'
            : `. Next: ${found.value.next_nodes.map((node) => store.labelOf(node)).join(', ')}.`}
        </p>
      )}
      {spent !== undefined && <p class="small muted">Used so far: {usageText(spent)}</p>}
    </section>
  );
}

/** Resolves after a delay or on abort. */
function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      window.clearTimeout(timer);
      resolve();
    });
  });
}
