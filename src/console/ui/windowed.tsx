/** A list of any length: only the rows in sight are on the page. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface WindowedProps {
  /** Of the list, for assistive technology. */
  readonly label: string;
  readonly count: number;
  /** Of each row, in pixels. */
  readonly rowHeight: number;
  /** The row to keep in sight; null: none. */
  readonly current?: number | null;
  readonly row: (index: number) => ComponentChildren;
}

/** Rows rendered beyond those in sight, on either side. */
const SPARE = 6;

/** It fills the height that its styles give it, and scrolls within. */
export function Windowed({ label, count, rowHeight, current = null, row }: WindowedProps) {
  const view = useRef<HTMLDivElement>(null);
  const place = useSignal({ top: 0, height: 600 });
  const measure = (): void => {
    const { scrollTop = 0, clientHeight = 0 } = view.current ?? {};
    if (place.value.top !== scrollTop || place.value.height !== clientHeight) {
      place.value = { top: scrollTop, height: clientHeight };
    }
  };
  useLayoutEffect(() => {
    const { current: element } = view;
    if (element === null) return undefined;
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { current: element } = view;
    if (element === null || current === null) return;
    const top = current * rowHeight;
    const isInSight = top >= element.scrollTop && top + rowHeight <= element.scrollTop + element.clientHeight;
    if (!isInSight) element.scrollTop = top - (element.clientHeight - rowHeight) / 2;
    measure();
  }, [current, rowHeight]);
  const first = Math.max(0, Math.floor(place.value.top / rowHeight) - SPARE);
  const last = Math.min(count, Math.ceil((place.value.top + place.value.height) / rowHeight) + SPARE);
  return (
    <div class="windowed" ref={view} onScroll={measure} tabIndex={-1}>
      <div class="windowed-rows" role="list" aria-label={label} style={{ height: `${count * rowHeight}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, offset) => {
          const index = first + offset;
          return (
            <div
              key={index}
              role="listitem"
              aria-posinset={index + 1}
              aria-setsize={count}
              style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
            >
              {row(index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
