/** The address of the page, which is its state: each view, filter and moment can be sent to somebody. */
import { computed, signal } from '@preact/signals';

const ROOT = '/console/';

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

/** Goes to a page. `replace`: without a step back to the one before. */
export function navigate(url: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) window.history.replaceState(null, '', url);
  else window.history.pushState(null, '', url);
  const before = address.value;
  address.value = new URL(window.location.href);
  if (!replace && before.pathname !== address.value.pathname) window.scrollTo(0, 0);
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
  window.addEventListener('popstate', () => (address.value = new URL(window.location.href)));
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
