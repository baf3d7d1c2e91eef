/** Saved views and filters. Both change only the URL. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { RunCounts } from '../../../generated/schemas.js';
import { countIn } from '../../record/outcome.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { session } from '../../shell/session.js';
import type { TextBoxProps } from '../../ui/controls.js';
import { Button, Check, Select, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import type { FilterName, View } from './filters.js';
import {
  BUILT_IN,
  COMMON_VIEWS,
  FAILURES,
  FILTERS,
  MAX_NAME,
  SORTS,
  STATUSES,
  filtersIn,
  isNarrowed,
  isShown,
  removeView,
  saveView,
  savedViews,
} from './filters.js';

/** Delay of a search after the last key, in milliseconds. */
const TYPING_MS = 300;

/** @param counts of each view, or null before they are known */
export function Views({ counts }: { readonly counts: RunCounts | null }) {
  const isNaming = useSignal(false);
  const views = [...COMMON_VIEWS, ...savedViews.value];
  return (
    <nav class="views" aria-label="Views">
      {COMMON_VIEWS.map((view) => (
        <ViewLink key={view.name} view={view} count={countIn(counts, filtersIn(new URLSearchParams(view.search)))} />
      ))}
      {savedViews.value.map((view) => (
        <span key={view.name} class="saved">
          <ViewLink view={view} />
          <button type="button" aria-label={`Remove the view ${view.name}`} onClick={() => removeView(view.name)}>
            ✕
          </button>
        </span>
      ))}
      {!views.some((view) => isShown(view, query.value)) && (
        <Button slim tone="plain" onClick={() => (isNaming.value = true)}>
          Save this view
        </Button>
      )}
      {isNaming.value && <NameView onClose={() => (isNaming.value = false)} />}
    </nav>
  );
}

function ViewLink({ view, count = null }: { readonly view: View; readonly count?: number | null }) {
  const { name, search } = view;
  const isCurrent = isShown(view, query.value);
  return (
    <a href={pageUrl([]) + (search && `?${search}`)} aria-current={isCurrent ? 'true' : undefined}>
      {name} {count !== null && <span class="view-count numeric">{count.toLocaleString('en')}</span>}
    </a>
  );
}

function NameView({ onClose }: { readonly onClose: () => void }) {
  const name = useSignal('');
  function save(event: Event): void {
    event.preventDefault();
    const text = name.value.trim();
    if (text === '') return;
    saveView({ name: text, search: query.value.toString() });
    onClose();
  }
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form class="stack" onSubmit={save}>
        <TextBox label="Name" maxLength={MAX_NAME} value={name.value} onType={(text) => (name.value = text)} />
        <div class="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" disabled={name.value.trim() === ''}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** @param names of blueprints, by id */
export function FilterBar({ names }: { readonly names: ReadonlyMap<string, string> }) {
  const isMore = ['trial', 'actor', 'from', 'to', 'min_score', 'max_score', 'parent', 'parent_run', 'children'].some(
    (name) => query.value.has(name),
  );
  return (
    <search class="filters">
      <div class="main-filters">
        <TextFilter isLabelUnseen name="q" label="Search" type="search" placeholder="Words of topic and final draft" />
        <StatusFilter />
        <Choice name="blueprint_id" label="Council" options={[[BUILT_IN, 'Built-in'], ...names]} all="Any council" />
        <Choice name="sort" label="Order" options={Object.entries(SORTS)} all={null} />
      </div>
      <details open={isMore}>
        <summary>More filters</summary>
        <div class="more-filters">
          <TextFilter name="from" label="Started from (UTC)" type="date" />
          <TextFilter name="to" label="Started until (UTC)" type="date" />
          <TextFilter name="min_score" label="Score from" {...SCORE} />
          <TextFilter name="max_score" label="Score to" {...SCORE} />
          {session.value.status === 'in' && !session.value.isOpen && <TextFilter name="actor" label="Started by" />}
          <TextFilter name="parent" label="Forks of run" placeholder="Run id" />
          <TextFilter name="parent_run" label="Runs of the councils in run" placeholder="Run id" />
          <Check
            label="Show runs of councils"
            checked={query.value.get('children') === '1'}
            onChange={(isOn) => setQuery({ children: isOn ? 1 : null })}
          />
          <Check
            label="Show test runs"
            checked={query.value.get('trial') === '1'}
            onChange={(isOn) => setQuery({ trial: isOn ? 1 : null })}
          />
        </div>
      </details>
      {isNarrowed(query.value) && (
        <Button slim tone="plain" onClick={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, null])))}>
          Clear all filters
        </Button>
      )}
    </search>
  );
}

const SCORE = { type: 'number', min: 0, max: 10, step: 'any' } as const;

interface TextFilterProps extends Omit<TextBoxProps, 'value' | 'onType'> {
  readonly name: FilterName;
}

/** Updates the URL when the user stops typing. */
function TextFilter({ name, ...box }: TextFilterProps) {
  const typed = useSignal<string | null>(null);
  const text = typed.value;
  useEffect(() => {
    if (text === null) return undefined;
    const timer = window.setTimeout(() => {
      setQuery({ [name]: text.trim() });
      typed.value = null;
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return <TextBox {...box} value={text ?? query.value.get(name) ?? ''} onType={(next) => (typed.value = next)} />;
}

/** The value for the status `failed`, which includes rejected and cancelled runs. An option only while it is chosen. */
const ALL_FAILED = 'all-failed';

/** Chooses a status, or for failed runs an outcome. */
function StatusFilter() {
  const { status, outcome } = filtersIn(query.value);
  const value = outcome ?? (status === 'failed' ? ALL_FAILED : (status ?? ''));
  return (
    <Select
      isLabelUnseen
      label="Status"
      value={value}
      options={[
        ['', 'Any status'],
        ...STATUSES.slice(0, -1).map((each) => [each, each === 'paused' ? 'waiting' : each] as const),
        ...FAILURES.map((each) => [each, each] as const),
        ...(value === ALL_FAILED ? [[ALL_FAILED, 'failed, rejected or cancelled'] as const] : []),
      ]}
      onChange={(chosen) => {
        const isOutcome = FAILURES.some((each) => each === chosen);
        setQuery({ status: isOutcome ? null : chosen, outcome: isOutcome ? chosen : null });
      }}
    />
  );
}

interface ChoiceProps {
  readonly name: FilterName;
  readonly label: string;
  /** Values with their texts. */
  readonly options: readonly (readonly [string, string])[];
  /** Text of the option for no filter, or null if the first option is the default. */
  readonly all: string | null;
}

function Choice({ name, label, options, all }: ChoiceProps) {
  const first = options[0]?.[0] ?? '';
  const value = query.value.get(name) ?? (all === null ? first : '');
  const isKnown = value === '' || options.some(([each]) => each === value);
  return (
    <Select
      isLabelUnseen
      label={label}
      value={value}
      options={[
        ...(all === null ? [] : [['', all] as const]),
        ...(isKnown ? [] : [[value, value] as const]),
        ...options,
      ]}
      onChange={(chosen) => setQuery({ [name]: all === null && chosen === first ? null : chosen })}
    />
  );
}
