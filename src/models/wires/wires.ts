/** The APIs of providers, by the names that PROVIDERS_FILE uses. A wire and its package are loaded with the first call. */
import type { Wire, WireOptions } from './wire.js';

export const WIRES = {
  openai: async (options: WireOptions): Promise<Wire> => (await import('./chat.js')).chatWire(options),
  anthropic: async (options: WireOptions): Promise<Wire> => (await import('./anthropic.js')).anthropicWire(options),
  gemini: async (options: WireOptions): Promise<Wire> => (await import('./gemini.js')).geminiWire(options),
};

export type ProviderApi = keyof typeof WIRES;
