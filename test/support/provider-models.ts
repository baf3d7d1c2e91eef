/** Models of providers as tests ask them, each on a transport of its own. */
import { modelTransport } from '../../src/models/transport.js';
import { NO_PROXIES } from './no-proxies.js';
import { providerModel } from '../../src/models/sdk-model.js';
import type { ProviderSettings } from '../../src/config-providers.js';
import type { LanguageModel } from '../../src/models/port.js';
import { nodeSystem } from '../../src/system/system.js';
import type { System } from '../../src/system/system.js';

const SETTINGS = {
  openai: { key: 'OPENAI_API_KEY', baseUrl: 'OPENAI_BASE_URL', model: 'OPENAI_MODEL' },
  anthropic: { key: 'ANTHROPIC_API_KEY', baseUrl: 'ANTHROPIC_BASE_URL', model: 'ANTHROPIC_MODEL' },
  gemini: { key: 'GEMINI_API_KEY', baseUrl: 'GEMINI_BASE_URL', model: 'GEMINI_MODEL' },
};

type Endpoint = Pick<ProviderSettings, 'baseUrl' | 'apiKey' | 'model'>;

/** A provider that is named as its wire. */
export function providerSettings(api: ProviderSettings['api'], endpoint: Endpoint): ProviderSettings {
  return { name: api, api, ...endpoint, maxCalls: null, settings: SETTINGS[api] };
}

/** The model of a provider that is named as its wire. */
export async function modelAt(
  api: ProviderSettings['api'],
  { now, after, ...endpoint }: Endpoint & { readonly now?: string; readonly after?: System['after'] },
): Promise<LanguageModel> {
  const transport = modelTransport(NO_PROXIES);
  const node = nodeSystem();
  const system = { now: () => now ?? node.now(), after: after ?? node.after };
  return await providerModel(providerSettings(api, endpoint), { transport, system });
}

/** Gemini at the origin of a fake server. */
export function geminiModel({ baseUrl, apiKey, model }: Endpoint): LanguageModel {
  return loadedLater('gemini', { baseUrl: `${baseUrl}/v1beta`, apiKey, model });
}

/** An OpenAI-compatible server at the base URL of a fake one. */
export function openAiModel({ baseUrl, apiKey, model }: Endpoint): LanguageModel {
  return loadedLater('openai', { baseUrl, apiKey, model });
}

function loadedLater(api: ProviderSettings['api'], endpoint: Endpoint): LanguageModel {
  let loading: Promise<LanguageModel> | null = null;
  return {
    provider: api,
    defaultModel: endpoint.model,
    async ask(request, call) {
      loading ??= modelAt(api, endpoint);
      return await (await loading).ask(request, call);
    },
  };
}
