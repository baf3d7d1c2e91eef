/**
 * Values in the browser's local storage, apart from those of a service at another path of the same server. Works without storage
 * too: then nothing outlasts the page.
 */
import { basePath } from './router.js';

/** The stored value, or null if there is none. */
export function readStored(name: string): unknown {
  try {
    return JSON.parse(window.localStorage.getItem(basePath + name) ?? 'null');
  } catch {
    return null;
  }
}

/** Stores a value as JSON. */
export function store(name: string, value: unknown): void {
  try {
    window.localStorage.setItem(basePath + name, JSON.stringify(value));
  } catch {
    // The value stays in memory until the page closes.
  }
}
