/** All events of a run on one line: the moment that is looked at, moved by pointer or keyboard. */
import type { RunEvent } from '../../../client/run-events.js';
import { eventWords } from '../../record/words.js';
import { Badge, Button } from '../../ui/controls.js';
import { exactly } from '../../ui/time.js';
import type { RunStore, Stop } from './store.js';

/** Left and right go by an event, with Shift to the next draft or decision. */
export function Scrubber({ store }: { readonly store: RunStore }) {
  const { value: head } = store.head;
  const { value: shown } = store.shown;
  const event = store.record.events[shown];
  const words = event === undefined ? '' : eventWords(event);
  function onKeyDown(event: KeyboardEvent): void {
    if (!event.shiftKey || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
    event.preventDefault();
    store.stride(event.key === 'ArrowRight' ? 1 : -1);
  }
  return (
    <section class="card scrubber" aria-label="Moment">
      <div class="row">
        <Steps store={store} />
        <EventShown event={event} words={words} head={head} />
        <Live store={store} />
      </div>
      <div class="scrubber-line">
        <input
          type="range"
          min={0}
          max={Math.max(0, head)}
          value={Math.max(0, shown)}
          aria-label="Moment of the run"
          aria-valuetext={`Event ${shown} of ${head}: ${words}`}
          title="← → by an event, with Shift to the next draft or decision"
          onInput={(input) => store.goTo(Number(input.currentTarget.value))}
          onKeyDown={onKeyDown}
        />
        <Ticks stops={store.stops.value} head={head} />
      </div>
    </section>
  );
}

function EventShown({
  event,
  words,
  head,
}: {
  readonly event: RunEvent | undefined;
  readonly words: string;
  readonly head: number;
}) {
  if (event === undefined) return <span class="grow" />;
  return (
    <p class="grow told clamp">
      <span class="muted numeric small">
        {event.seq}/{head}
      </span>{' '}
      {words}{' '}
      <time class="muted small" datetime={event.at}>
        {exactly(event.at)}
      </time>
    </p>
  );
}

function Steps({ store }: { readonly store: RunStore }) {
  const { value: shown } = store.shown;
  const isFirst = shown <= 0;
  const isLast = shown >= store.head.value;
  return (
    <div class="row steps">
      <Button slim label="To the draft or decision before" disabled={isFirst} onClick={() => store.stride(-1)}>
        «
      </Button>
      <Button slim label="One event back" disabled={isFirst} onClick={() => store.step(-1)}>
        ‹
      </Button>
      <Button slim label="One event on" disabled={isLast} onClick={() => store.step(1)}>
        ›
      </Button>
      <Button slim label="To the next draft or decision" disabled={isLast} onClick={() => store.stride(1)}>
        »
      </Button>
    </div>
  );
}

function Live({ store }: { readonly store: RunStore }) {
  if (store.isFollowing.value) return <Badge tone="busy">Live</Badge>;
  if (store.shown.value >= store.head.value) return <Badge>At the end</Badge>;
  return (
    <Button slim onClick={() => store.goTo(null)}>
      {store.isOver.value || !store.source.isLive ? 'To the end' : 'Back to live'}
    </Button>
  );
}

/** What lies where, below the line. */
const TICKS = ['draft', 'score', 'pause', 'decision', 'failure'] as const satisfies readonly Stop['kind'][];

function Ticks({ stops, head }: { readonly stops: readonly Stop[]; readonly head: number }) {
  if (head < 1) return null;
  const kinds = TICKS.filter((kind) => stops.some((stop) => stop.kind === kind));
  return (
    <>
      <svg class="ticks" viewBox={`0 0 ${head} 1`} preserveAspectRatio="none" aria-hidden="true">
        {kinds.map((kind) => (
          <path key={kind} class={kind} d={ticksOf(stops, kind)} />
        ))}
      </svg>
      <ul class="legend small muted" aria-label="Marks on the line">
        {kinds.map((kind) => (
          <li key={kind} class={kind}>
            {kind}
          </li>
        ))}
      </ul>
    </>
  );
}

function ticksOf(stops: readonly Stop[], kind: Stop['kind']): string {
  return stops.flatMap((stop) => (stop.kind === kind ? [`M${stop.seq} 0V1`] : [])).join('');
}
