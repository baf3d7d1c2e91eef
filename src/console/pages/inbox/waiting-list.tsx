/** The runs that wait, longest wait first: selects the run to decide. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Approval } from '../../../generated/schemas.js';
import { countOf } from '../../record/counts.js';
import { titledTopic } from '../../../run/titled-topic.js';
import { actor } from '../../shell/session.js';
import { Button } from '../../ui/controls.js';
import { Since } from '../../ui/time.js';
import type { Card, InboxStore } from './store.js';
import { isForBudget } from './store.js';

/** Rows shown at first, and added by “Show more”. */
const SHOWN = 30;

export function WaitingList({ store, current }: { readonly store: InboxStore; readonly current: Card }) {
  const shown = useSignal(SHOWN);
  const { value: cards } = store.cards;
  const list = useArrows(store, current.key);
  if (cards.length < 2) return null;
  const last = Math.max(shown.value, cards.findIndex(({ key }) => key === current.key) + 1);
  return (
    <nav class="waiting-list" aria-label="Waiting runs" {...list}>
      <ol>
        {cards.slice(0, last).map((card) => (
          <li key={card.key}>
            <Row card={card} isCurrent={card.key === current.key} onSelect={() => store.select(card)} />
          </li>
        ))}
      </ol>
      {cards.length > last && (
        <Button slim onClick={() => (shown.value = last + SHOWN)}>
          Show more ({cards.length - last})
        </Button>
      )}
    </nav>
  );
}

/** The arrow keys select the row above or below, and the focus follows. */
function useArrows(store: InboxStore, current: string) {
  const ref = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const { activeElement: focused } = document;
    if (focused !== null && ref.current?.contains(focused) === true)
      ref.current.querySelector<HTMLElement>('[aria-current]')?.focus();
  }, [current]);
  function onKeyDown(event: KeyboardEvent): void {
    const by = STEPS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    store.step(by);
  }
  return { ref, onKeyDown };
}

const STEPS: Readonly<Record<string, 1 | -1>> = { ArrowDown: 1, ArrowUp: -1 };

interface RowProps {
  readonly card: Card;
  readonly isCurrent: boolean;
  readonly onSelect: () => void;
}

function Row({ card: { pause, late }, isCurrent, onSelect }: RowProps) {
  return (
    <button type="button" aria-current={isCurrent ? 'true' : undefined} onClick={onSelect}>
      <span class="clamp break">{titledTopic(pause)}</span>
      <span class="small muted">
        {pause.blueprint.name ?? 'Built-in council'} ·{' '}
        {late === null ? <Since at={pause.waiting_since} /> : <b class="soon">too late</b>}
        {isForBudget(pause) && ' · budget reached'}
        {pause.quorum > 1 && ` · ${votesText(pause)}`}
      </span>
    </button>
  );
}

function votesText({ quorum, votes }: Approval): string {
  const isMine = votes.some((vote) => vote.actor === actor.value);
  return `${votes.length} of ${countOf(quorum, 'vote')}${isMine ? ', you voted' : ''}`;
}
