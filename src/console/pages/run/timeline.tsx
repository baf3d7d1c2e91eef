/** The timeline of a run: the periods of each node, with long waits as breaks. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { Lane, Segment } from '../../record/timeline-lanes.js';
import type { Timeline, Zone } from '../../record/timeline.js';
import { timeSpent } from '../../record/timeline.js';
import { waitText } from '../../record/event-text.js';
import { lengthText } from '../../record/durations.js';
import type { RunStore } from './store.js';

/** Arrow keys move between periods and lanes; Enter selects. */
export function TimelineView({ store }: { readonly store: RunStore }) {
  const timeline = store.timeline.value;
  if (timeline === null || timeline.zones.length + timeline.lanes.length === 0) {
    return <p class="muted">No step has started.</p>;
  }
  return (
    <section class="card" aria-label="Timeline">
      <p class="small muted">{spent(timeline)}</p>
      <div class="timeline" tabIndex={0} role="group" aria-label="Periods">
        <div class={`timeline-sheet${timeline.zones.some(({ isBreak }) => isBreak) ? ' broken' : ''}`}>
          <Zones zones={timeline.zones} />
          <Lanes lanes={timeline.lanes} store={store} />
          <Now store={store} />
        </div>
      </div>
    </section>
  );
}

function spent(timeline: Timeline): string {
  const { totalMs, byKind } = timeSpent(timeline);
  const parts = [...byKind].flatMap(([kind, ms]) =>
    kind === 'work' || ms < 1_000 ? [] : [`${lengthText(ms)} ${waitText(kind)}`],
  );
  return [`${lengthText(totalMs)} in total`, ...parts].join(' · ');
}

function Zones({ zones }: { readonly zones: readonly Zone[] }) {
  const breaks = zones.filter(({ isBreak }) => isBreak);
  return (
    <ul class="zones" aria-label="Breaks">
      {breaks.map((zone) => (
        <li key={zone.fromMs} class={zone.kind} style={{ left: percent(zone.x0), width: percent(zone.x1 - zone.x0) }}>
          <span>
            {zone.label}
            <span class="unseen">: {zone.kind !== 'work' && waitText(zone.kind)}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

interface Focus {
  readonly lane: number;
  readonly segment: number;
}

/** A lane on the page. */
interface Row {
  readonly key: string;
  readonly lane: Lane;
  /** Whether its member lanes are shown, or null if it has none. */
  readonly isOpen: boolean | null;
  readonly isMember: boolean;
}

/** The lanes, with those of members below the nodes that the user has opened. */
function rowsOf(lanes: readonly Lane[], opened: ReadonlySet<string>): readonly Row[] {
  return lanes.flatMap((lane): readonly Row[] => {
    const key = `node ${lane.node ?? ''}`;
    if (lane.members.length === 0) return [{ key, lane, isOpen: null, isMember: false }];
    const isOpen = opened.has(key);
    const members = isOpen ? lane.members : [];
    return [
      { key, lane, isOpen, isMember: false },
      ...members.map((member, at) => ({ key: `${key} ${at}`, lane: member, isOpen: null, isMember: true })),
    ];
  });
}

function Lanes({ lanes, store }: { readonly lanes: readonly Lane[]; readonly store: RunStore }) {
  const focus = useSignal<Focus>({ lane: 0, segment: 0 });
  const opened = useSignal<ReadonlySet<string>>(new Set());
  const sheet = useRef<HTMLDivElement>(null);
  const rows = rowsOf(lanes, opened.value);
  function onKeyDown(event: KeyboardEvent): void {
    const next = movedFocus(
      rows.map(({ lane }) => lane),
      focus.value,
      event.key,
    );
    if (next === null) return;
    event.preventDefault();
    focus.value = next;
    sheet.current?.children[next.lane]?.querySelectorAll<HTMLElement>('.segment')[next.segment]?.focus();
  }
  function toggle({ key, isOpen }: Row): void {
    opened.value = new Set(isOpen === true ? [...opened.value].filter((each) => each !== key) : [...opened.value, key]);
  }
  return (
    <div ref={sheet} onKeyDown={onKeyDown}>
      {rows.map((row, index) => (
        <div class={`lane${row.isMember ? ' member' : ''}`} key={row.key} role="group" aria-label={row.lane.label}>
          <LaneLabel row={row} onToggle={() => toggle(row)} />
          <div class="lane-track">
            {row.lane.segments.map((segment, at) => (
              <button
                key={`${segment.seq} ${segment.kind}`}
                type="button"
                class={`segment ${segment.kind} ${segment.result ?? ''}${segment.isOpen ? ' open' : ''}`}
                style={{ left: percent(segment.x0), width: percent(segment.x1 - segment.x0) }}
                tabIndex={focus.value.lane === index && focus.value.segment === at ? 0 : -1}
                aria-label={segmentWords(segment)}
                aria-pressed={isSelected(store, segment)}
                title={`${row.lane.label}, ${segmentWords(segment)}`}
                onFocus={() => (focus.value = { lane: index, segment: at })}
                onClick={() =>
                  segment.kind === 'human' ? store.goTo(segment.seq) : store.select(segment.number, segment.member)
                }
              />
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

function isSelected(store: RunStore, { kind, number, member }: Segment): boolean {
  return kind !== 'human' && store.selectedStep.value === number && store.selectedMember.value === member;
}

function LaneLabel({ row: { lane, isOpen }, onToggle }: { readonly row: Row; readonly onToggle: () => void }) {
  if (isOpen === null) {
    return (
      <span class="lane-label clip" title={lane.label}>
        {lane.label}
      </span>
    );
  }
  return (
    <button
      type="button"
      class="lane-label clip"
      title={lane.label}
      aria-expanded={isOpen}
      aria-label={`Members of ${lane.label}`}
      onClick={onToggle}
    >
      {lane.label}
    </button>
  );
}

function movedFocus(lanes: readonly Lane[], { lane, segment }: Focus, key: string): Focus | null {
  const { segments = [] } = lanes[lane] ?? {};
  const across = ACROSS[key];
  if (across !== undefined) return focusAt(lanes, lane + across, segments[segment]?.x0 ?? 0);
  const next = segment + (ALONG[key] ?? 0);
  return next !== segment && next in segments ? { lane, segment: next } : null;
}

/** The first period of a lane that ends after a position, or its last, or null without such a lane. */
function focusAt(lanes: readonly Lane[], lane: number, x: number): Focus | null {
  const { segments = [] } = lanes[lane] ?? {};
  const found = segments.findIndex(({ x1 }) => x1 > x);
  return segments.length === 0 ? null : { lane, segment: found === -1 ? segments.length - 1 : found };
}

const ALONG: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };
const ACROSS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

function segmentWords({ kind, number, attempt, result, label, isOpen }: Segment): string {
  const retry = attempt !== null && attempt > 1 ? `, attempt ${attempt}` : '';
  const what = `${kind === 'human' ? 'pause' : 'step'} ${number}${retry}`;
  const how = isOpen ? 'active' : (result ?? '');
  const why = kind === 'work' || kind === 'lost' ? '' : waitText(kind);
  return [what, why, how, label].filter((part) => part !== '').join(', ');
}

/** Marks the event shown. */
function Now({ store }: { readonly store: RunStore }) {
  const mark = store.timeline.value?.events[store.shown.value];
  if (mark === undefined) return null;
  return (
    <div class="timeline-now" aria-hidden="true">
      <span style={{ left: percent(store.isFollowing.value ? 1 : mark.x) }} />
    </div>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
