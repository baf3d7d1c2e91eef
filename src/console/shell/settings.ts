/** What a user has set for this browser: shortcuts, the undo window, notifications and the theme. */
import { effect } from '@preact/signals';
import { ownStored } from './own-storage.js';
import { session } from './session.js';
import { readStored, store } from './storage.js';

export type Theme = 'system' | 'light' | 'dark';

export interface Settings {
  /** Whether single letters are shortcuts (WCAG 2.1.4). */
  readonly shortcuts: boolean;
  /** Whether a decision waits 5 s, in which the user can undo it. */
  readonly undo: boolean;
  /** Whether the browser notifies the user of new pauses, and the page title counts them. */
  readonly notifications: boolean;
  readonly theme: Theme;
}

const settingsOfKey = ownStored('council.settings', settingsIn);

/** The settings of the key in use. */
export const settings = settingsOfKey.value;

export function changeSettings(change: Partial<Settings>): void {
  settingsOfKey.set({ ...settings.peek(), ...change });
}

/** The theme that this browser showed last, for the sign-in form and the time before the session is known. */
const LAST_THEME = 'council.theme';

/** Applies the theme to the page. Call once, before the page is rendered. */
export function followTheme(): void {
  effect(() => {
    const isIn = session.value.status === 'in';
    const theme = isIn ? settings.value.theme : themeIn(readStored(LAST_THEME));
    if (isIn) store(LAST_THEME, theme);
    document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
  });
}

function settingsIn(stored: unknown): Settings {
  const found: Readonly<Record<string, unknown>> = typeof stored === 'object' ? { ...stored } : {};
  return {
    shortcuts: found['shortcuts'] !== false,
    undo: found['undo'] !== false,
    notifications: found['notifications'] === true,
    theme: themeIn(found['theme']),
  };
}

function themeIn(stored: unknown): Theme {
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}
