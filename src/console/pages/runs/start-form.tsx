/** The form that starts a run: in a dialog, and on the first page of an empty service. */
import type { ComponentChildren } from 'preact';
import type { ReadonlySignal, Signal } from '@preact/signals';
import { useSignal, useComputed } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { dollarText } from '../../../run/cost-text.js';
import { countOf, shortCount } from '../../record/counts.js';
import { lengthText } from '../../record/durations.js';
import { council } from '../../shell/council.js';
import { navigateFromHere, pageUrl } from '../../shell/router.js';
import { may, lockIfUnauthorized } from '../../shell/session.js';
import type { TextBoxProps } from '../../ui/controls.js';
import { Button, Check, Select, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { useResource } from '../../ui/resource.js';
import { ModelNames } from '../blueprint/model-names.js';
import type { Council, StartFault, Wanted } from './start-run.js';
import { EXAMPLE, TOPICS, faultOf, startRun } from './start-run.js';
import { MatterFields, useMatter } from './matter.js';
import type { Budget } from '../../../generated/schemas.js';
import type { LimitFaults, OnExceeded, TypedLimits } from '../../record/budget.js';
import { NO_LIMITS, ON_EXCEEDED, isOnExceeded, limitsIn } from '../../record/budget.js';
import { LimitFields } from '../../ui/budget-fields.js';

/** The state of a topic form. */
function useTopic(act: (topic: string) => Promise<void>) {
  const topic = useSignal('');
  const isBusy = useSignal(false);
  const fault = useSignal<StartFault | null>(null);
  async function submit(start = act): Promise<void> {
    if (isBusy.value) return;
    if (topic.value.trim() === '') {
      fault.value = { at: 'topic', text: 'Enter a topic for the council.' };
      return;
    }
    isBusy.value = true;
    fault.value = null;
    try {
      await start(topic.value);
    } catch (error) {
      lockIfUnauthorized(error);
      fault.value = faultOf(error);
    } finally {
      isBusy.value = false;
    }
  }
  return { topic, isBusy: isBusy.value, fault: fault.value, submit: (start = act) => void submit(start) };
}

async function startAndGo(wanted: Wanted, councils: readonly Council[]): Promise<void> {
  const go = navigateFromHere();
  go(pageUrl(['runs', await startRun(council, wanted, councils)]));
}

/** The topic field and the error of the form. */
function TopicField({ topic, fault, submit }: ReturnType<typeof useTopic>) {
  const element = useRef<HTMLElement | null>(null);
  // The focus moves to the field at first, and after an error.
  useEffect(() => element.current?.focus(), [fault]);
  return (
    <>
      <TextBox
        label="Topic"
        fault={fault?.at === 'topic' ? fault.text : null}
        element={(found) => (element.current = found)}
        rows={4}
        placeholder="A question, a brief, or a text to work on"
        value={topic.value}
        onType={(text) => (topic.value = text)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
      {fault?.at === 'form' && (
        <div class="notice bad" role="alert">
          {fault.text}
        </div>
      )}
    </>
  );
}

const CTRL_ENTER = <kbd aria-hidden="true">Ctrl ↵</kbd>;

export interface TopicDialogProps {
  readonly title: string;
  /** Text of its button. */
  readonly verb: string;
  readonly start: (topic: string) => Promise<void>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** A dialog that asks for a topic. */
export function TopicDialog({ title, verb, start, onClose, children }: TopicDialogProps) {
  const asked = useTopic(start);
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button tone="primary" disabled={asked.isBusy} onClick={() => asked.submit()}>
        {verb} {CTRL_ENTER}
      </Button>
    </>
  );
  return (
    <Dialog {...{ title, onClose, foot }}>
      <TopicField {...asked} />
      {children}
    </Dialog>
  );
}

const GOD_MODE = 'The run waits before each member until you approve, edit or reject.';

export interface StartDialogProps {
  /** The councils to choose from. */
  readonly councils: readonly Council[];
  /** The council, or null to let the user choose. */
  readonly blueprint?: Council | null;
  readonly onClose: () => void;
}

export function StartDialog({ councils, blueprint = null, onClose }: StartDialogProps) {
  const chosen = useSignal(blueprint?.id ?? '');
  const godMode = useSignal(false);
  const isBuiltIn = chosen.value === '';
  const isAlways = councils.some(({ id, god_mode }) => id === chosen.value && god_mode === 'always');
  const isGuided = isAlways || (godMode.value && !isBuiltIn);
  const budget = useBudget();
  const model = useSignal('');
  const isTried = useSignal(false);
  const matter = useMatter();
  async function start(topic: string): Promise<void> {
    isTried.value = true;
    if (Object.keys(budget.faults.value).length > 0) return;
    const wanted = {
      topic,
      blueprint: chosen.value,
      godMode: isGuided,
      budget: budget.budget.value,
      model: model.value.trim(),
    };
    await matter.send((given) => startAndGo({ ...wanted, ...given }, councils));
  }
  return (
    <TopicDialog
      title={blueprint === null ? 'Start a run' : `Start a run of “${blueprint.name}”`}
      verb="Start"
      onClose={onClose}
      start={start}
    >
      {blueprint === null && (
        <CouncilField value={chosen.value} councils={councils} onChange={(id) => (chosen.value = id)} />
      )}
      <div class="stack god-mode">
        <Check
          label="God Mode"
          checked={isGuided}
          disabled={isBuiltIn || isAlways}
          onChange={(checked) => (godMode.value = checked)}
        />
        <span class="small muted">
          {GOD_MODE} {isBuiltIn && 'Not available for the built-in council: choose another one.'}
          {isAlways && 'This council asks for it in every run.'}
        </span>
      </div>
      <MatterFields of={matter} />
      <ModelField value={model.value} onType={(text) => (model.value = text)} />
      <BudgetFields of={budget} areFaultsShown={isTried.value} />
      <EstimateLine key={chosen.value} blueprint={chosen.value} />
    </TopicDialog>
  );
}

/** The model of the members that name none; suggests the providers' default models. */
function ModelField({ value, onType }: Pick<TextBoxProps, 'value' | 'onType'>) {
  return (
    <>
      <ModelNames id="models-to-start" />
      <TextBox
        label="Model of members without their own"
        placeholder="Default of the service"
        list="models-to-start"
        value={value}
        onType={onType}
      />
    </>
  );
}

/** What the last runs of the council have cost. */
function EstimateLine({ blueprint }: { readonly blueprint: string }) {
  const { value: loaded } = useResource(`estimate ${blueprint}`, (signal) =>
    blueprint === EXAMPLE.id
      ? Promise.resolve(null)
      : council.runs.estimate({ ...(blueprint !== '' && { blueprint }), signal }),
  ).state;
  if (loaded.status !== 'ready' || loaded.value === null) return null;
  const { runs, cost_usd: cost, tokens, duration_ms: duration } = loaded.value;
  if (runs === 0) return <p class="small muted">This council has no completed runs to estimate from.</p>;
  const parts = [
    cost.median === null ? 'cost not reported' : dollarText(cost.median),
    ...(tokens.median === null ? [] : [`${shortCount(tokens.median)} tokens`]),
    ...(duration.median === null ? [] : [lengthText(duration.median)]),
  ];
  return (
    <p class="small muted">
      Estimate from {countOf(runs, 'completed run')} of this council: {parts.join(', ')} (median).
    </p>
  );
}

interface CouncilFieldProps {
  /** Empty for the built-in council. */
  readonly value: string;
  readonly councils: readonly Council[];
  readonly onChange: (id: string) => void;
}

function CouncilField({ value, councils, onChange }: CouncilFieldProps) {
  const hasExample = councils.some(({ id }) => id === EXAMPLE.id);
  return (
    <Select
      label="Council"
      value={value}
      onChange={onChange}
      options={[
        ['', 'Built-in: master, critic, writer'],
        ...(!hasExample && may('author') ? [[EXAMPLE.id, EXAMPLE.name] as const] : []),
        ...councils.map(({ id, name }) => [id, name] as const),
      ]}
    />
  );
}

/** The first page of an empty service. */
export function FirstRun({ councils }: { readonly councils: readonly Council[] }) {
  const matter = useMatter();
  const starting = (blueprint: string) => (topic: string) =>
    matter.send((given) =>
      startAndGo({ topic, blueprint, godMode: blueprint !== '', budget: null, model: '', ...given }, councils),
    );
  const asked = useTopic(starting(''));
  const hasExample = councils.some(({ id }) => id === EXAMPLE.id);
  return (
    <section class="first-run" aria-labelledby="first-run">
      <div class="stack">
        <h2 id="first-run">Give a council its first topic</h2>
        <p class="muted">
          The master writes a draft. The critic scores it from 0 to 10, and sends it back with feedback below 8. The
          writer polishes the final draft.
        </p>
      </div>
      <TopicField {...asked} />
      <div class="row topics">
        <span class="small muted">Try:</span>
        {TOPICS.map((text) => (
          <Button key={text} slim onClick={() => (asked.topic.value = text)}>
            {text}
          </Button>
        ))}
      </div>
      <MatterFields of={matter} />
      <div class="ways">
        <Way text="The run continues to the final draft on its own.">
          <Button tone="primary" disabled={asked.isBusy} onClick={() => asked.submit()}>
            Start the run {CTRL_ENTER}
          </Button>
        </Way>
        {(hasExample || may('author')) && (
          <Way text={GOD_MODE}>
            <Button disabled={asked.isBusy} onClick={() => asked.submit(starting(EXAMPLE.id))}>
              Start the example council in God Mode
            </Button>
          </Way>
        )}
      </div>
      <p class="small muted">Without an API key for a model, an offline model answers by fixed rules.</p>
    </section>
  );
}

function Way({ text, children }: { readonly text: string; readonly children: ComponentChildren }) {
  return (
    <div class="stack">
      {children}
      <span class="small muted">{text}</span>
    </div>
  );
}

export interface TypedBudget {
  readonly typed: Signal<TypedLimits>;
  readonly onExceeded: Signal<OnExceeded>;
  readonly faults: ReadonlySignal<LimitFaults>;
  /** The budget, or null if no limit is typed. */
  readonly budget: ReadonlySignal<Budget | null>;
}

/** The state of the fields. */
export function useBudget(): TypedBudget {
  const typed = useSignal(NO_LIMITS);
  const onExceeded = useSignal<OnExceeded>('pause');
  const faults = useComputed(() => limitsIn(typed.value).faults);
  const budget = useComputed(() => {
    const { limits } = limitsIn(typed.value);
    return Object.keys(limits).length === 0 ? null : { ...limits, on_exceeded: onExceeded.value };
  });
  return { typed, onExceeded, faults, budget };
}

const LABELS = { usd: 'At most, in US dollars', tokens: 'At most, in tokens' } as const;

/** @param areFaultsShown whether the user has tried to start the run */
export function BudgetFields({ of, areFaultsShown }: { readonly of: TypedBudget; readonly areFaultsShown: boolean }) {
  const { typed, onExceeded, faults, budget } = of;
  return (
    <details class="start-part">
      <summary>Budget (optional)</summary>
      <div class="stack">
        <LimitFields
          labels={LABELS}
          typed={typed.value}
          faults={areFaultsShown ? faults.value : {}}
          onType={(change) => (typed.value = { ...typed.value, ...change })}
        />
        {budget.value !== null && (
          <Select
            label="When the next call would pass it"
            value={onExceeded.value}
            options={ON_EXCEEDED}
            onChange={(value) => {
              if (isOnExceeded(value)) onExceeded.value = value;
            }}
          />
        )}
        <p class="small muted">
          Before each call the service reserves the prompt and the longest answer: 8,192 tokens, unless the node sets
          another limit. A budget here replaces that of the council.
        </p>
      </div>
    </details>
  );
}
