/** Long lists that render only visible rows. `Windowed` scrolls on its own, `usePageWindow` with the page. */
import type { ComponentChildren, RefObject } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

export interface WindowedProps {
  /** Accessible name of the list. */
  readonly label: string;
  readonly count: number;
  /** In pixels. */
  readonly rowHeight: number;
  /** The row to keep visible, or null. */
  readonly current?: number | null;
  readonly row: (index: number) => ComponentChildren;
}

/** Extra rows on either side. */
const SPARE = 6;

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

/** Extra lines on either side; the window moves in steps of as many. */
const AROUND = 12;

export interface PageWindow<E extends Element> {
  /** The element that holds only the lines. */
  readonly ref: RefObject<E | null>;
  /** The lines to render: `from` inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  /** Space for the other lines, in pixels. */
  readonly beforePx: number;
  readonly afterPx: number;
  /** Whether the first line is visible or below the window. */
  readonly isTop: boolean;
}

/**
 * The lines to render as the page scrolls. All lines have the height of the first element with `data-line`.
 *
 * @param linePx height of a line before the first render, in pixels
 */
export function usePageWindow<E extends Element>(count: number, linePx: number): PageWindow<E> {
  const ref = useRef<E>(null);
  const height = useSignal(linePx);
  const first = useSignal(0);
  const shown = useSignal(Math.ceil(window.innerHeight / linePx));
  const isTop = useSignal(true);
  useEffect(() => {
    let frame = 0;
    const measure = (): void => {
      frame = 0;
      if (ref.current === null) return;
      const drawnPx = ref.current.querySelector('[data-line]')?.getBoundingClientRect().height ?? 0;
      if (drawnPx > 0) height.value = drawnPx;
      const { top } = ref.current.getBoundingClientRect();
      isTop.value = top > -height.value;
      // In steps, so that scrolling by one line does not render.
      first.value = Math.floor(Math.max(0, -top) / height.value / AROUND) * AROUND;
      shown.value = Math.ceil(window.innerHeight / height.value) + AROUND;
    };
    const later = (): void => {
      frame ||= window.requestAnimationFrame(measure);
    };
    measure();
    window.addEventListener('scroll', later, { passive: true });
    window.addEventListener('resize', later);
    return () => {
      window.cancelAnimationFrame(frame);
      window.removeEventListener('scroll', later);
      window.removeEventListener('resize', later);
    };
  }, [count > 0]);
  const from = Math.max(0, Math.min(first.value - AROUND, count - shown.value));
  const to = Math.min(count, first.value + shown.value + AROUND);
  return { ref, from, to, beforePx: from * height.value, afterPx: (count - to) * height.value, isTop: isTop.value };
}
