/** The address of the page, which is its state: each view, filter and moment can be sent to somebody. */
import { computed, signal } from '@preact/signals';

const ROOT = '/console/';

/** Browsers refuse addresses that change too often (Safari 100 in 30 s): of those in between only the last is written. */
const WRITE_EVERY_MS = 350;

const address = signal(new URL(window.location.href));

/** The parts of the path after /console/, decoded. */
export const path = computed<readonly string[]>(() =>
  address.value.pathname
    .slice(ROOT.length)
    .split('/')
    .filter((part) => part !== '')
    .map(decoded),
);

/** What the address says after its question mark. */
export const query = computed(() => address.value.searchParams);

/** The address of a page of the console. @param parts of its path @param parameters what is null or empty is left out */
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

/** Whether the page may be left for another; if not, it has the address to go to later. */
export type LeaveGuard = (url: string) => boolean;
let guard: LeaveGuard | null = null;

/** Asks before the page is left for another of the console; null: nobody is asked. */
export function guardLeaving(asked: LeaveGuard | null): void {
  guard = asked;
}

/** Whether somebody is to be asked before: something is not saved. */
export function isGuarded(): boolean {
  return guard !== null;
}

function mayGo({ pathname, href }: URL): boolean {
  return pathname === address.value.pathname || guard === null || guard(href);
}

/** Goes to a page. `replace`: without a step back to the one before. */
export function navigate(url: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const before = address.value;
  if (!mayGo(new URL(url, before))) return;
  if (!replace) writeNow();
  address.value = new URL(url, before);
  if (replace) return writeSoon();
  window.history.pushState(null, '', address.value);
  if (before.pathname !== address.value.pathname) window.scrollTo(0, 0);
}

/** Navigates later, once a request is answered: nobody is taken away from where they have gone meanwhile. */
export function navigateFromHere(): typeof navigate {
  const { pathname } = address.value;
  return (url, options) => {
    if (address.value.pathname === pathname) navigate(url, options);
  };
}

/** Until when the next address waits to be written; null: it is written at once. */
let rest: number | null = null;
let isDue = false;

function writeSoon(): void {
  isDue = true;
  if (rest === null) writeNow();
}

function writeNow(): void {
  if (!isDue) return;
  isDue = false;
  window.history.replaceState(null, '', address.value);
  if (rest !== null) window.clearTimeout(rest);
  rest = window.setTimeout(() => {
    rest = null;
    writeNow();
  }, WRITE_EVERY_MS);
}

/** Changes parts of the query in place; null takes one out. A filter or a moment is no page to go back from. */
export function setQuery(changes: Readonly<Record<string, string | number | null>>, { replace = true } = {}): void {
  const url = new URL(address.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  }
  if (url.search !== address.value.search) navigate(url.pathname + url.search, { replace });
}

/** Follows the browser's own steps, and links of the console without loading the page anew. */
export function startRouter(): void {
  window.addEventListener('popstate', () => {
    isDue = false;
    const next = new URL(window.location.href);
    if (mayGo(next)) address.value = next;
    else window.history.pushState(null, '', address.value);
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

/** Whether the browser is asked for something else, such as a new tab. */
function isForBrowser(event: MouseEvent): boolean {
  return (
    event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey
  );
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
