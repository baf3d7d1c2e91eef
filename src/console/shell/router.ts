/** The URL of the page holds its state, so that users can share each view, filter and event. */
import { computed, signal } from '@preact/signals';

/**
 * Path of the service on the server of this page, such as `/council`, or ''. The page's modules come from below it; elsewhere,
 * as in a shared file, it is ''.
 */
export const basePath = basePathIn(import.meta.url);

const ROOT = `${basePath}/console/`;

/** Shortest time between two replaced URLs: browsers refuse frequent changes (Safari: more than 100 in 30 s). */
const WRITE_EVERY_MS = 350;

const address = signal(new URL(window.location.href));

/** Where the user was on each page of this tab, by the number of its entry in the browser's history. */
const scrolls = new Map<number, number>();
let entry = 0;
let lastEntry = 0;

/** The parts of the path after /console/, decoded. */
export const path = computed<readonly string[]>(() =>
  address.value.pathname
    .slice(ROOT.length)
    .split('/')
    .filter((part) => part !== '')
    .map(decoded),
);

/** The query of the URL. */
export const query = computed(() => address.value.searchParams);

/** The URL of a page. @param parts of its path @param parameters without those that are null or empty */
export function pageUrl(
  parts: readonly string[],
  parameters: Readonly<Record<string, string | number | null>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== null && value !== '') search.set(name, String(value));
  const text = search.toString();
  return ROOT + parts.map(encodeURIComponent).join('/') + (text === '' ? '' : `?${text}`);
}

/** Whether the user may leave the page; gets the URL of the next page. */
export type LeaveGuard = (url: string) => boolean;
let guard: LeaveGuard | null = null;

/** Sets the guard that decides whether the user may leave the page, or removes it with null. */
export function guardLeaving(asked: LeaveGuard | null): void {
  guard = asked;
}

/** Whether a guard is set: the page has unsaved changes. */
export function hasUnsavedChanges(): boolean {
  return guard !== null;
}

function mayGo({ pathname, href }: URL): boolean {
  return pathname === address.value.pathname || guard === null || guard(href);
}

/** Goes to a page. @param replace adds no entry to the browser's history */
export function navigate(url: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const before = address.value;
  if (!mayGo(new URL(url, before))) return;
  if (!replace) writeNow();
  address.value = new URL(url, before);
  if (replace) return writeSoon();
  lastEntry += 1;
  entry = lastEntry;
  window.history.pushState(entry, '', address.value);
  if (before.pathname !== address.value.pathname) window.scrollTo(0, 0);
}

/** A `navigate` for after a request: does nothing if the user has left the page meanwhile. */
export function navigateFromHere(): typeof navigate {
  const { pathname } = address.value;
  return (url, options) => {
    if (address.value.pathname === pathname) navigate(url, options);
  };
}

/** The timer until the next write is allowed, or null if it is allowed now. */
let writeTimer: number | null = null;
let isWriteDue = false;

function writeSoon(): void {
  isWriteDue = true;
  if (writeTimer === null) writeNow();
}

function writeNow(): void {
  if (!isWriteDue) return;
  isWriteDue = false;
  window.history.replaceState(entry, '', address.value);
  if (writeTimer !== null) window.clearTimeout(writeTimer);
  writeTimer = window.setTimeout(() => {
    writeTimer = null;
    writeNow();
  }, WRITE_EVERY_MS);
}

/** Changes parts of the query; null removes one. By default adds no entry to the browser's history. */
export function setQuery(changes: Readonly<Record<string, string | number | null>>, { replace = true } = {}): void {
  const url = new URL(address.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  }
  if (url.search !== address.value.search) navigate(url.pathname + url.search, { replace });
}

/**
 * Handles the back button, and links of the console without a page load. Call once.
 *
 * @param scrollBackTo gets the place on a page to which the user returns, in pixels
 */
export function startRouter(scrollBackTo: (y: number) => void): void {
  window.history.scrollRestoration = 'manual';
  // A reload restores the place itself.
  window.addEventListener('pagehide', () => (window.history.scrollRestoration = 'auto'));
  entry = lastEntry = Number(window.history.state ?? 0);
  window.addEventListener('scroll', () => scrolls.set(entry, window.scrollY), { passive: true });
  window.addEventListener('popstate', ({ state }) => {
    isWriteDue = false;
    const next = new URL(window.location.href);
    if (!mayGo(next)) return window.history.pushState(entry, '', address.value);
    const isOtherPage = next.pathname !== address.value.pathname;
    entry = Number(state ?? 0);
    const y = scrolls.get(entry) ?? 0;
    address.value = next;
    if (isOtherPage) scrollBackTo(y);
  });
  window.addEventListener('pagehide', writeNow);
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || !isOurs(link) || isForBrowser(event)) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}

function isOurs(link: HTMLAnchorElement): boolean {
  return (
    link.origin === window.location.origin &&
    link.pathname.startsWith(ROOT) &&
    link.target === '' &&
    !link.hasAttribute('download') &&
    !(link.hash !== '' && link.pathname === window.location.pathname)
  );
}

/** Whether the browser handles the click itself, for example in a new tab. */
function isForBrowser(event: MouseEvent): boolean {
  return (
    event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey
  );
}

function basePathIn(module: string): string {
  const { pathname } = new URL(module);
  return pathname.slice(0, Math.max(0, pathname.lastIndexOf('/console/assets/')));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
