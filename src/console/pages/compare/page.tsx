/** Compares two runs: equal steps are folded, differences are shown word by word. */
import type { ComponentChildren } from 'preact';
import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { NotFoundError } from '../../../client/errors.js';
import type { ComparedRuns } from '../../record/compare.js';
import { lengthText } from '../../record/durations.js';
import { dollarText } from '../../../run/cost-text.js';
import { excerpt, shortCount } from '../../record/counts.js';
import { pageUrl, query } from '../../shell/router.js';
import { lockIfUnauthorized } from '../../shell/session.js';
import { Status } from '../../ui/controls.js';
import { Empty, Failure, Loading } from '../../ui/states.js';
import { DraftDiff } from '../../ui/text-diff.js';
import { Ago, now } from '../../ui/time.js';
import { liveSource } from '../run/live-source.js';
import { Cited, useSources } from '../run/sources.js';
import type { RunSummary } from '../run/store.js';
import { RunStore } from '../run/store.js';
import { Other, Same } from './pairs.js';
import { Comparison } from './store.js';
import { usePageTitle } from '../../shell/title.js';

export function ComparePage() {
  usePageTitle('Compare');
  const [a, b] = [query.value.get('a') ?? '', query.value.get('b') ?? ''];
  return (
    <main id="page" class="compare">
      <div class="page-head">
        <h1>Compare two runs</h1>
        {a !== '' && b !== '' && (
          <a class="button" href={pageUrl(['compare'], { a: b, b: a })}>
            Swap sides
          </a>
        )}
      </div>
      {a === '' || b === '' ? (
        <Empty title="Choose two runs">
          <p>
            Select them in <a href={pageUrl([])}>the list of runs</a>.
          </p>
        </Empty>
      ) : (
        <Compared key={`${a} ${b}`} a={a} b={b} />
      )}
    </main>
  );
}

function Compared({ a, b }: { readonly a: string; readonly b: string }) {
  const comparison = useMemo(() => new Comparison(storeOf(a), storeOf(b), now), []);
  const round = useSignal(0);
  useEffect(() => comparison.start(), [round.value]);
  const { left, right, compared, stretches } = comparison;
  const fault = left.fault.value ?? right.fault.value;
  useEffect(() => lockIfUnauthorized(fault), [fault]);
  [left, right].forEach(useSources);
  if (fault instanceof NotFoundError) {
    return (
      <Empty title="One of these runs does not exist">
        <a href={pageUrl([])}>Show the runs</a>
      </Empty>
    );
  }
  const [one, other] = [left.summary.value, right.summary.value];
  const failure = fault === null ? null : <Failure error={fault} onRetry={() => (round.value += 1)} />;
  if (compared.value === null || one === null || other === null) return failure ?? <Loading what="both runs" />;
  // The texts of the first difference are open.
  const firstOther = stretches.value.findIndex(({ kind }) => kind === 'other');
  // The numbers of B's draft, because the changes lead to it.
  const draft = [other, one].map(({ now: { finalDraft } }) => finalDraft ?? '').join('\n');
  return (
    <Cited stores={[left, right]} draft={draft} sources={[left.sources.value, right.sources.value]}>
      {failure}
      <Totals {...{ a, b, one, other }} />
      <ForkNotice fork={compared.value.fork} a={a} b={b} />
      <FinalDrafts before={one.now.finalDraft} after={other.now.finalDraft} />
      <section class="stack" aria-label="Steps">
        <h2>Step by step</h2>
        {stretches.value.length === 0 && <p class="muted">Neither run has started.</p>}
        {stretches.value.map((stretch, at) =>
          stretch.kind === 'same' ? (
            <Same key={at} pairs={stretch.pairs} isFirst={at === 0} left={left} right={right} />
          ) : (
            <Other key={at} pair={stretch.pair} isOpen={at === firstOther} left={left} right={right} />
          ),
        )}
      </section>
    </Cited>
  );
}

interface ForkNoticeProps extends Pick<TotalsProps, 'a' | 'b'> {
  readonly fork: ComparedRuns['fork'];
}

function ForkNotice({ fork, a, b }: ForkNoticeProps) {
  if (fork === null) return null;
  const [parent, child, id] = fork.parent === 'left' ? ['A', 'B', a] : ['B', 'A', b];
  return (
    <p class="notice">
      <span>
        {child} is a fork of {parent} at <a href={pageUrl(['runs', id], { at: fork.at })}>event {fork.at}</a>.
      </span>
    </p>
  );
}

/** A store at the head of a run: ignores the query of the URL. */
function storeOf(id: string): RunStore {
  // Shows no draft while it is written.
  const { tokens: _, ...source } = liveSource(id);
  return new RunStore({
    source,
    place: { query: signal(new URLSearchParams()), setQuery: () => undefined },
    clock: now,
    frame: (show) => void window.requestAnimationFrame(show),
  });
}

interface TotalsProps {
  readonly a: string;
  readonly b: string;
  readonly one: RunSummary;
  readonly other: RunSummary;
}

function Totals({ a, b, one, other }: TotalsProps) {
  const sides = [one, other];
  return (
    <div class="card totals">
      <table class="table">
        <thead>
          <tr>
            <td />
            {[a, b].map((id, at) => (
              <th key={at} scope="col">
                {at === 0 ? 'A' : 'B'}:{' '}
                <a class="name break" href={pageUrl(['runs', id])} title={sides[at]?.topic}>
                  {excerpt(sides[at]?.topic ?? '')}
                </a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {TOTALS.map(([name, tell]) => {
            const values = sides.map(tell);
            return (
              <tr key={name} class={values[0] === values[1] ? 'muted' : undefined}>
                <th scope="row">{name}</th>
                {values.map((value, at) => (
                  <td key={at} class="numeric break">
                    {value}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The rows of the summary table. */
const TOTALS: readonly (readonly [name: string, tell: (run: RunSummary) => ComponentChildren])[] = [
  ['Status', ({ now: { status, error } }) => <Status status={status} error={error} />],
  ['Council', ({ council: name, isGodMode }) => `${name ?? 'Built-in'}${isGodMode ? ', God Mode' : ''}`],
  ['Score', ({ now: { score } }) => score ?? '–'],
  ['Drafts', ({ now: { iteration } }) => iteration],
  ['Calls', ({ now: { usage } }) => usage.calls],
  ['Tokens in', ({ now: { usage } }) => tokens(usage.inputTokens)],
  ['Tokens out', ({ now: { usage } }) => tokens(usage.outputTokens)],
  ['Cost', ({ now: { usage } }) => (usage.costUsd === null ? 'not reported' : dollarText(usage.costUsd))],
  ['Waited for decisions', ({ now: { waitedMs } }) => (waitedMs === 0 ? '–' : lengthText(waitedMs))],
  [
    'Duration',
    (run) => lengthText((run.endedAt === null ? now.value : Date.parse(run.endedAt)) - Date.parse(run.createdAt)),
  ],
  ['Started', ({ createdAt }) => <Ago at={createdAt} />],
];

function tokens(count: number | null): string {
  return count === null ? 'not reported' : shortCount(count);
}

function FinalDrafts({ before, after }: { readonly before: string | null; readonly after: string | null }) {
  if (before === null && after === null) return null;
  return (
    <section class="stack" aria-label="Final drafts">
      <h2>Final drafts</h2>
      {before === null || after === null ? (
        <p class="muted">Only {before === null ? 'B' : 'A'} has a final draft.</p>
      ) : (
        <div class="card">
          <DraftDiff {...{ before, after }} />
        </div>
      )}
    </section>
  );
}
