/** The runs that the councils in a run have started, and the draft that grows from their results. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { costText } from '../../../run/cost-text.js';
import { countOf } from '../../record/counts.js';
import type { ChildRun, CouncilStep } from '../../record/child-runs.js';
import { councilStepsAt } from '../../record/child-runs.js';
import { pageUrl } from '../../shell/router.js';
import { Status } from '../../ui/controls.js';
import { Prose } from '../../ui/prose.js';
import type { RunRow } from '../runs/run-row.js';
import type { RunStore } from './store.js';

interface ChildRunsProps {
  readonly store: RunStore;
  /** Shows only the runs of this step. Default: those of all. */
  readonly step?: number;
}

type Rows = ReadonlyMap<string, RunRow>;

export function ChildRuns({ store, step }: ChildRunsProps) {
  const rows = useRows(store);
  const { value: shown } = store.shown;
  const steps = useMemo(() => councilStepsAt(store.record, shown), [store, shown]);
  const listed = steps.filter((each) => step === undefined || each.step === step);
  return (
    <>
      {listed.map((each) => (
        <StepRuns key={each.step} {...{ store, rows }} of={each} />
      ))}
      {step === undefined && store.source.isLive && listed.length > 0 && <AllRuns store={store} of={listed} />}
      {step === undefined &&
        listed.filter(({ isOpen }) => isOpen).map((each) => <DraftSoFar key={each.step} {...{ store }} of={each} />)}
    </>
  );
}

/** Links the runs of all steps as a list. */
function AllRuns({ store, of }: { readonly store: RunStore; readonly of: readonly CouncilStep[] }) {
  const count = of.reduce((sum, { runs }) => sum + runs.length, 0);
  return (
    <a class="small" href={pageUrl([], { parent_run: store.source.id, sort: 'created_at' })}>
      {count === 1 ? 'Its run in the list' : `All ${count} runs in the list`}
    </a>
  );
}

/** The runs as the service lists them, by id: they add the score and pauses to what the record says. */
function useRows({ source, isOver }: RunStore): Rows {
  const rows = useSignal<Rows>(new Map());
  useEffect(() => {
    const ending = new AbortController();
    const put = (row: RunRow): void => void (rows.value = new Map(rows.value).set(row.id, row));
    // Without them the rows show what the record says.
    source.followChildren?.(put, ending.signal).catch(() => undefined);
    return () => ending.abort();
  }, [source, isOver.value]);
  return rows.value;
}

interface StepProps {
  readonly store: RunStore;
  readonly of: CouncilStep;
}

function StepRuns({ store, rows, of }: StepProps & { readonly rows: Rows }) {
  const { node, count, runs, isOpen } = of;
  const label = store.labelOf(node);
  const ended = runs.filter(({ end }) => end !== null);
  const failed = ended.filter(({ end }) => end?.status === 'failed').length;
  return (
    <details class="deliberation-part child-runs" open={isOpen}>
      <summary>
        <h3>{label}</h3>
        <span class="muted small">
          {`${ended.length} of ${countOf(count, 'run')} ended`}
          {failed > 0 && `, ${failed} failed`}
        </span>
      </summary>
      <ol aria-label={`Runs of ${label}`}>
        {runs.map((run) => (
          <Row key={run.index} {...{ store, run }} row={rows.get(run.id)} />
        ))}
      </ol>
    </details>
  );
}

interface RowProps {
  readonly store: RunStore;
  readonly run: ChildRun;
  readonly row: RunRow | undefined;
}

function Row({ store, run, row }: RowProps) {
  const { id, title = 'Its run', end } = run;
  const list = `parent_run=${store.source.id}&sort=created_at`;
  const score = end === null ? null : (row?.score ?? null);
  return (
    <li class="row small">
      <span class="name break">
        {store.source.isLive ? <a href={pageUrl(['runs', id], { list })}>{title}</a> : title}
      </span>
      <span>
        <Status {...statusOf(store, { end, row })} />
      </span>
      <span>{score === null ? '' : `score ${score}`}</span>
      <span>{end?.costUsd === undefined || end.costUsd === null ? '' : costText(end.costUsd)}</span>
    </li>
  );
}

/** The status at the event shown: before its end, what a run was doing is known at the head alone. */
function statusOf(
  store: RunStore,
  { end, row }: { readonly end: ChildRun['end']; readonly row: RunRow | undefined },
): Pick<RunRow, 'status' | 'error'> {
  if (end !== null) return { status: end.status, error: row?.error ?? end.error ?? null };
  return row !== undefined && store.shown.value === store.head.value ? row : { status: 'running', error: null };
}

/** The results of the runs that have ended, under the titles of their items, as the draft of the step will have them. */
function DraftSoFar({ store, of: { node, count, runs } }: StepProps) {
  const done = runs.flatMap(({ title, end }) =>
    title === undefined || end?.status !== 'completed' ? [] : [`## ${title}\n\n${end.output}`],
  );
  if (done.length === 0) return null;
  return (
    <div class="document">
      <section aria-label={`Draft of ${store.labelOf(node)} so far`}>
        <h2 class="small muted">
          {store.labelOf(node)} so far: {done.length} of {count}
        </h2>
        <Prose text={done.join('\n\n')} />
      </section>
    </div>
  );
}
