/** All configured providers behind one model. A model's full name is `provider/model`; a node may shorten it (`modelCatalog`). */
import type { ProxySettings } from '../config-values.js';
import type { ProviderSettings, Providers } from '../config-providers.js';
import type { ModelFailureKind } from '../errors.js';
import { ConfigInvalid, ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { modelFailed } from './failed-exchange.js';
import { OFFLINE_MODEL, offlineModel } from './offline.js';
import type { LanguageModel, ProviderInfo } from './port.js';
import { providerOf } from './port.js';
import type { Transport } from './transport.js';
import { isUsableName, USABLE_NAMES } from './wires/gemini.js';

export interface ModelCatalog {
  /** The full name of a node's model; absent means the default provider's default model. */
  fullName(model: string | undefined): string;
  /** Names of the configured providers, `offline` among them, the default first. */
  readonly names: readonly string[];
}

/** How nodes name models. */
export function modelCatalog({ configured, default: fallback }: Providers): ModelCatalog {
  const models = new Map(configured.map(({ name, model }) => [name, model]));
  models.set('offline', OFFLINE_MODEL);
  const defaultModel = `${fallback}/${models.get(fallback) ?? ''}`;
  return {
    names: [...new Set([fallback, ...models.keys()])],
    fullName(model) {
      if (model === undefined || model === '') return defaultModel;
      // Councils that were tried before providers had names are frozen so.
      if (model === OFFLINE_MODEL) return `offline/${OFFLINE_MODEL}`;
      const slash = model.indexOf('/');
      const provider = slash === -1 ? model : model.slice(0, slash);
      const own = models.get(provider);
      if (own === undefined) return `${fallback}/${model}`;
      return slash === -1 || slash === model.length - 1 ? `${provider}/${own}` : model;
    },
  };
}

export interface ProvidersDeps {
  readonly proxies: ProxySettings;
  /** What a call to the offline model takes, in milliseconds. */
  readonly offlineLatencyMs: number;
  readonly system: Pick<System, 'after' | 'now'>;
}

/**
 * One model that asks each request's provider; requests name models in full. A call of a provider that is not configured
 * fails with `not_configured`. Loads only the packages that are used.
 *
 * @throws {ConfigInvalid} for a model of Gemini that cannot be a name
 */
export function routedModel({ configured, default: fallback }: Providers, deps: ProvidersDeps): LanguageModel {
  const catalog = modelCatalog({ configured, default: fallback });
  configured.forEach(assertUsable);
  const modelOf = loadedModels(configured, deps);
  return {
    provider: fallback,
    defaultModel: catalog.fullName(undefined),
    fullName: (model) => catalog.fullName(model),
    providers: catalog.names.map((name) => infoOf(name, configured)),
    maxCalls: new Map(
      configured.flatMap(({ name, maxCalls }) => (maxCalls === null ? [] : [[name, maxCalls] as const])),
    ),
    async ask(request, call) {
      const name = request.model ?? catalog.fullName(undefined);
      const provider = providerOf(name);
      const connecting = modelOf(provider);
      if (connecting === null) throw notConfigured(name);
      const model = name.slice(provider.length + 1);
      try {
        return await (await connecting).ask({ ...request, model }, call);
      } catch (error) {
        throw name === catalog.fullName(undefined)
          ? error
          : withRoute(error, { provider, model, names: catalog.names });
      }
    },
  };
}

/** The model of a provider by its name, connected at its first call, or null if the provider is not configured. */
function loadedModels(
  configured: readonly ProviderSettings[],
  { proxies, offlineLatencyMs, system }: ProvidersDeps,
): (provider: string) => Promise<LanguageModel> | null {
  const offline = Promise.resolve(offlineModel({ latencyMs: offlineLatencyMs, system }));
  const models = new Map<string, Promise<LanguageModel>>([['offline', offline]]);
  let transport: Transport | null = null;
  const connect = async (settings: ProviderSettings): Promise<LanguageModel> => {
    const [{ providerModel }, { modelTransport }] = await Promise.all([
      import('./sdk-model.js'),
      import('./transport.js'),
    ]);
    transport ??= modelTransport(proxies);
    return await providerModel(settings, { transport, system });
  };
  return (provider) => {
    const settings = configured.find(({ name }) => name === provider);
    const model = models.get(provider) ?? (settings === undefined ? null : connect(settings));
    if (model !== null) models.set(provider, model);
    return model;
  };
}

/** A refusal by the default provider, with what became of a name whose provider is not configured. */
function withRoute(
  error: unknown,
  { provider, model, names }: { readonly provider: string; readonly model: string; readonly names: readonly string[] },
): unknown {
  const [prefix = ''] = model.split('/');
  if (provider !== names[0] || !model.includes('/') || names.includes(prefix)) return error;
  if (!(error instanceof ModelFailed) || !OF_NAMES.has(error.data.kind)) return error;
  const route = `no provider named "${prefix}" is configured; sent as model "${model}" to provider "${provider}"`;
  return new ModelFailed(`${error.message} (${route})`, error.data);
}

/** Failures of which the name of the model may be the cause. */
const OF_NAMES: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['model_unknown', 'model_unusable', 'bad_request', 'forbidden'] as const),
]);

function infoOf(name: string, configured: readonly ProviderSettings[]): ProviderInfo {
  const found = configured.find((each) => each.name === name);
  if (found === undefined) return { name, api: 'offline', host: null, defaultModel: OFFLINE_MODEL };
  return { name, api: found.api, host: new URL(found.baseUrl).host, defaultModel: found.model };
}

/** @throws {ConfigInvalid} for a model of Gemini that cannot be a name */
function assertUsable({ api, model, settings }: ProviderSettings): void {
  if (api !== 'gemini' || isUsableName(model)) return;
  throw new ConfigInvalid({ variable: settings.model, value: model, accepted: USABLE_NAMES });
}

/**
 * The failure of a call whose provider is not configured, as after a restart without it: an outage, because the provider may
 * come back, and its texts are not for another one.
 */
function notConfigured(name: string): ModelFailed {
  const missing = `provider "${providerOf(name)}" is not configured, and no other is asked in its place`;
  return modelFailed(`Cannot ask model "${name}": ${missing}`, 'not_configured');
}
