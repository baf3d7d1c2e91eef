/** The rows of the list of events: the events of a panel's members are one row until it is opened. */
import type { RunEvent } from '../../client/run-events.js';

/** An event, or the events of the members of a panel, rank or jury that follow each other. */
export type EventRow = { readonly seq: number; readonly fold: null } | { readonly seq: number; readonly fold: Fold };

/** Events of one panel, rank or jury. */
export interface Fold {
  readonly node: string;
  /** `seq` of the last event; the row's `seq` is that of the first. */
  readonly last: number;
  readonly isOpen: boolean;
}

/**
 * The rows of the events up to a number of them. Two or more events of one panel in a row are folded.
 *
 * @param opened whether the user has opened or closed the fold that begins with an event; undefined: neither
 * @param shown the event that the page shows: its fold is open unless the user has closed it
 */
export function eventRows(
  events: readonly RunEvent[],
  count: number,
  { opened, shown }: { readonly opened: (seq: number) => boolean | undefined; readonly shown: number },
): readonly EventRow[] {
  const rows: EventRow[] = [];
  const panelOfStep = new Map<number, number>();
  for (let seq = 0; seq < count;) {
    const panel = panelOf(events[seq], panelOfStep);
    let last = seq;
    while (panel !== null && last + 1 < count && panelOf(events[last + 1], panelOfStep) === panel) last += 1;
    const isOpen = last === seq || (opened(seq) ?? (seq <= shown && shown <= last));
    const node = nodeOf(events[seq]);
    if (last > seq && node !== null) rows.push({ seq, fold: { node, last, isOpen } });
    if (isOpen) for (let each = seq; each <= last; each += 1) rows.push({ seq: each, fold: null });
    seq = last + 1;
  }
  return rows;
}

/** The number of the panel that an event belongs to, or null. @param panelOfStep is filled by the starts of members */
function panelOf(event: RunEvent | undefined, panelOfStep: Map<number, number>): number | null {
  if (event === undefined) return null;
  const { data } = event;
  const panelStep = 'panelStep' in data ? (data.panelStep ?? null) : null;
  if (panelStep !== null) {
    if ('step' in data) panelOfStep.set(data.step, panelStep);
    return panelStep;
  }
  return 'step' in data ? (panelOfStep.get(data.step) ?? null) : null;
}

function nodeOf(event: RunEvent | undefined): string | null {
  return event !== undefined && 'node' in event.data ? event.data.node : null;
}
