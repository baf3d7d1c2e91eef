/** Long lists that the page itself scrolls: only the lines in sight are drawn, and some around them. */
import type { RefObject } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

/** Lines that are drawn before and after those in sight; the window moves on by as many. */
const AROUND = 12;

export interface PageWindow<E extends Element> {
  /** Of the element that holds the lines and nothing else. */
  readonly ref: RefObject<E | null>;
  /** The lines to draw: from the first, to before the last. */
  readonly from: number;
  readonly to: number;
  /** Room for the lines that are not drawn, in pixels. */
  readonly beforePx: number;
  readonly afterPx: number;
  /** Whether the first line is in sight, or below it. */
  readonly isTop: boolean;
}

/**
 * What of a list is to be drawn as the page is scrolled. All lines have one height, that of the first that bears
 * `data-line`.
 *
 * @param count of the lines
 * @param linePx height of a line before one was drawn, in pixels
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
      // In steps, so that not every line that is scrolled draws anew.
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
