/** The web search that the environment chooses. */
import type { Config } from '../config.js';
import { searxng } from './searxng.js';
import { tavily } from './tavily.js';
import type { SearchProvider } from './web-search.js';

/** Builds the adapter of a provider; nothing is sent. Null: the environment names none. */
export function searchProvider(settings: Config['webSearch']): SearchProvider | null {
  if (settings === null) return null;
  return settings.name === 'tavily' ? tavily(settings) : searxng(settings);
}
