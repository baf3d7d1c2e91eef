/** The model of one provider: its wire and its server behind the one adapter. */
import type { Dispatcher } from 'undici';
import type { ProviderSettings } from '../config-providers.js';
import type { System } from '../system/system.js';
import type { LanguageModel } from './port.js';
import { sdkModel } from './sdk-model.js';
import { WIRES } from './wires/wires.js';

/** Builds the adapter of a provider, loading only the package of its wire; sends nothing. */
export async function providerModel(
  provider: ProviderSettings,
  { transport, system }: { readonly transport: Dispatcher; readonly system: Pick<System, 'now'> },
): Promise<LanguageModel> {
  const { name, api, baseUrl, apiKey, model, settings } = provider;
  const hints = new Map([
    ['unauthorized', `check ${settings.key}`],
    ['forbidden', `check ${settings.key}`],
    ['model_unknown', `check ${settings.model} and ${settings.baseUrl}`],
    ['quota_used_up', `the account of ${settings.key} has no quota or credit left`],
    ['prompt_blocked', 'the prompt was blocked'],
  ]);
  const wire = await WIRES[api]({ baseUrl, apiKey });
  const server = { addressSetting: settings.baseUrl, hints };
  return sdkModel({ provider: name, model, apiKey, wire, server, transport, system });
}
