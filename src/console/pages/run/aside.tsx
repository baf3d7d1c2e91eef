/** Beside the views of a run: scores, numbers, and whether its record is consistent. */
import type { ComponentChildren } from 'preact';
import { budgetText } from '../../../run/cost-text.js';
import { lengthText } from '../../record/durations.js';
import { usageFacts } from '../../record/usage-text.js';
import { pageUrl } from '../../shell/router.js';
import { CopyButton } from '../../ui/clipboard.js';
import type { Fact } from '../../ui/controls.js';
import { Facts } from '../../ui/controls.js';
import { Since, dateTimeText } from '../../ui/time.js';
import { HashChain } from './hash-chain.js';
import { Scores } from './scores.js';
import type { RunStore, RunSummary } from './store.js';

interface AsideProps {
  readonly store: RunStore;
  readonly children?: ComponentChildren;
}

export function Aside({ store, children }: AsideProps) {
  const { value: summary } = store.summary;
  if (summary === null) return null;
  return (
    <aside class="run-aside" aria-label="About this run">
      <Scores store={store} />
      <section class="stack close" aria-labelledby="numbers">
        <h2 id="numbers">This run</h2>
        <Facts facts={factsOf(store, summary)} look="facts small" />
      </section>
      <HashChain store={store} />
      {children}
    </aside>
  );
}

function factsOf(store: RunStore, summary: RunSummary): readonly Fact[] {
  const { now, actor, createdAt, endedAt } = summary;
  return [
    ['Council', <Council {...{ store, summary }} />],
    ...(now.score === null ? [] : [['Score', `${now.score} of 10`] as const]),
    ...(now.iteration === 0 ? [] : [['Drafts', now.iteration] as const]),
    ...usageFacts(now.usage, endedAt !== null),
    ...(now.budget === null ? [] : [['Budget', budgetText(now.budget)] as const]),
    ...(now.waitedMs === 0 ? [] : [['In pauses', lengthText(now.waitedMs)] as const]),
    endedAt === null
      ? ['Running for', <Since at={createdAt} />]
      : ['Duration', lengthText(Date.parse(endedAt) - Date.parse(createdAt))],
    ['Started', `${dateTimeText(createdAt)}${actor === null ? '' : ` by ${actor}`}`],
    [
      'Run id',
      <span class="copied">
        <code class="clip" title={store.source.id}>
          {store.source.id}
        </code>
        <CopyButton name="Run id" of={() => ({ text: store.source.id })} />
      </span>,
    ],
  ];
}

function Council({ store, summary: { council, blueprintId } }: AsideProps & { readonly summary: RunSummary }) {
  const name = council ?? 'Built-in council';
  if (blueprintId === null || !store.source.isLive) return <>{name}</>;
  return <a href={pageUrl(['blueprints', blueprintId])}>{name}</a>;
}
