/** The title of the page in the browser's tab. */
import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

const parts = signal<readonly string[]>([]);

/** Number before the title, such as that of waiting runs; 0 shows none. */
export const countInTitle = signal(0);

/** Shows the title of a page, the most special part first: `usePageTitle('Sauna', 'Run')`. */
export function usePageTitle(...shown: readonly string[]): void {
  useEffect(() => void (parts.value = shown), shown);
}

/** Keeps the browser's title up to date. Call once. */
export function startTitle(): void {
  effect(() => {
    const { value: count } = countInTitle;
    document.title = (count > 0 ? `(${count}) ` : '') + [...parts.value, 'Council'].join(' · ');
  });
}
