/** What happens when a page is shown: the focus moves to its heading, and Back restores where the user was. */
import { effect } from '@preact/signals';
import { path } from './router.js';

/** Longest time to wait for the heading or the height of a page that still loads. */
const WAIT_MS = 5_000;

/** Moves the focus to the heading of each page that the user goes to. Call once. */
export function focusHeadings(): void {
  let before: string | null = null;
  effect(() => {
    const now = path.value.join('/');
    if (before !== null && before !== now) whenShown(focusHeading);
    before = now;
  });
}

/** @returns whether the heading is there; an element of the page that has the focus already keeps it */
function focusHeading(): boolean {
  const heading = document.querySelector<HTMLElement>('main h1:not(.unseen)');
  if (heading === null) return false;
  if (document.activeElement?.closest('main, dialog') !== null && document.activeElement !== null) return true;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  return true;
}

/** Scrolls to a place as soon as the page is long enough, unless the user scrolls before. */
export function scrollBackTo(y: number): void {
  whenShown(() => {
    if (document.documentElement.scrollHeight < y + window.innerHeight) return false;
    window.scrollTo(0, y);
    return true;
  }, ['wheel', 'touchstart', 'keydown']);
}

/** Tries after each change of the page until it works, the time is over, or one of these events comes. */
function whenShown(attempt: () => boolean, until: readonly string[] = []): void {
  window.requestAnimationFrame(() => {
    if (attempt()) return;
    const observer = new MutationObserver(() => {
      if (attempt()) end();
    });
    const timer = window.setTimeout(end, WAIT_MS);
    function end(): void {
      observer.disconnect();
      window.clearTimeout(timer);
      for (const type of until) window.removeEventListener(type, end);
    }
    for (const type of until) window.addEventListener(type, end, { passive: true });
    observer.observe(document.body, { childList: true, subtree: true });
  });
}
