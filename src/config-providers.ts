/** The settings of the providers of language models: contract, section 6.1. */
import type { Variable, Variables } from './config-values.js';
import { address, modelName, oneOf, secret } from './config-values.js';
import { ConfigInvalid } from './errors.js';
import { faultIn } from './models/prices.js';
import type { ProviderApi } from './models/wires/wires.js';
import { WIRES } from './models/wires/wires.js';
import { isRecord } from './system/untrusted.js';

/** A named endpoint with its own key and base URL. */
export interface ProviderSettings {
  /** As in `provider/model`. */
  readonly name: string;
  readonly api: ProviderApi;
  /** Visible ASCII, so that it fits a header, or null if the server asks for none. Never shown. */
  readonly apiKey: string | null;
  /** http or https with the API's version, without a trailing slash, query, fragment or credentials. */
  readonly baseUrl: string;
  /** The model of nodes that name the provider and no model. */
  readonly model: string;
  /** Calls at once, or null if only MAX_MODEL_CALLS bounds them. */
  readonly maxCalls: number | null;
  /** The settings that hold these values, for messages. */
  readonly settings: { readonly key: string; readonly baseUrl: string; readonly model: string };
}

export interface Providers {
  /** The configured ones, the default first; none if only the offline model answers. */
  readonly configured: readonly ProviderSettings[];
  /** Name of the default provider: that of the first, or `offline`. */
  readonly default: string;
}

/** A provider that the service knows by name. */
interface BuiltIn {
  readonly name: string;
  readonly api: ProviderApi;
  /** The vendor's, or null if there is none. */
  readonly baseUrl: string | null;
  /** Used without a setting at the vendor's address, or null if the setting is required. */
  readonly model: string | null;
}

/** In the order in which the first configured one becomes the default. Models as of July 2026. */
const BUILT_IN: readonly BuiltIn[] = [
  {
    name: 'gemini',
    api: 'gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    // Stable since September 2026, no end announced (ai.google.dev/gemini-api/docs/deprecations).
    model: 'gemini-3.8-flash',
  },
  { name: 'openai', api: 'openai', baseUrl: 'https://api.openai.com/v1', model: 'gpt-5.4' },
  { name: 'anthropic', api: 'anthropic', baseUrl: 'https://api.anthropic.com/v1', model: 'claude-sonnet-5' },
  { name: 'openrouter', api: 'openai', baseUrl: 'https://openrouter.ai/api/v1', model: 'openrouter/auto' },
  { name: 'mistral', api: 'openai', baseUrl: 'https://api.mistral.ai/v1', model: 'mistral-large-latest' },
  { name: 'groq', api: 'openai', baseUrl: 'https://api.groq.com/openai/v1', model: 'openai/gpt-oss-120b' },
  { name: 'deepseek', api: 'openai', baseUrl: 'https://api.deepseek.com/v1', model: 'deepseek-chat' },
  { name: 'xai', api: 'openai', baseUrl: 'https://api.x.ai/v1', model: 'grok-4.5' },
  { name: 'ollama', api: 'openai', baseUrl: null, model: null },
];

/** Names that a providers file cannot give, and of which a blueprint's author is warned where they are not configured. */
export const BUILT_IN_PROVIDERS: readonly string[] = [...BUILT_IN.map(({ name }) => name), 'offline'];

/**
 * Every provider whose key or base URL is set, and those of PROVIDERS_FILE.
 *
 * @param readText reads a file as UTF-8
 * @throws {ConfigInvalid}
 */
export function providers(variable: Variables, readText: (path: string) => string): Providers {
  const known = BUILT_IN.flatMap((each) => builtIn(each, variable));
  const configured = [...known, ...fileProviders(variable, readText)];
  const wanted = variable('MODEL_PROVIDER').value;
  if (wanted === null) return { configured, default: configured[0]?.name ?? 'offline' };
  const names = [...new Set([...BUILT_IN_PROVIDERS, ...configured.map(({ name }) => name)])];
  const name = oneOf(variable('MODEL_PROVIDER'), names, wanted);
  if (name === 'offline') return { configured, default: name };
  const chosen = configured.find((each) => each.name === name);
  if (chosen !== undefined) {
    return { configured: [chosen, ...configured.filter((each) => each !== chosen)], default: name };
  }
  throw new ConfigInvalid({
    variable: 'MODEL_PROVIDER',
    value: name,
    accepted: `"offline", or set ${needs(name)} too`,
  });
}

/** Every value is checked, also of a provider that is not configured: a typing error shows when it is made. */
function builtIn(
  { name, api, baseUrl: vendor, model: preset }: BuiltIn,
  variable: Variables,
): readonly ProviderSettings[] {
  const settings = settingsOf(name);
  const apiKey = name === 'ollama' ? null : secret(variable(settings.key));
  const given = address(variable(settings.baseUrl));
  const baseUrl = given === null ? vendor : withVersion(given, api, settings.baseUrl);
  const named = modelName(variable(settings.model));
  if (baseUrl === null || (apiKey === null && given === null)) return [];
  const model = named ?? (baseUrl === vendor || name !== 'openai' ? preset : null);
  if (model === null) {
    const accepted = `the name of a model that ${settings.baseUrl} serves`;
    throw new ConfigInvalid({ variable: settings.model, value: '', accepted });
  }
  return [{ name, api, apiKey, baseUrl, model, maxCalls: null, settings }];
}

function settingsOf(name: string): ProviderSettings['settings'] {
  const prefix = name.toUpperCase();
  return { key: `${prefix}_API_KEY`, baseUrl: `${prefix}_BASE_URL`, model: `${prefix}_MODEL` };
}

function needs(name: string): string {
  const { key, baseUrl, model } = settingsOf(name);
  if (name === 'ollama') return `${baseUrl} and ${model}`;
  return name === 'openai' ? `${key}, or ${baseUrl} and ${model},` : `${key} or ${baseUrl}`;
}

/** A base URL without a path gets the API's version. @throws {ConfigInvalid} for the address of a request */
function withVersion(baseUrl: string, api: ProviderApi, variable: string): string {
  const [request] = /\/(?:chat\/completions|completions|responses|messages)$/.exec(baseUrl) ?? [];
  if (request !== undefined) {
    const accepted = `${JSON.stringify(baseUrl.slice(0, -request.length))}, the address without "${request}"`;
    throw new ConfigInvalid({ variable, value: baseUrl, accepted });
  }
  return new URL(baseUrl).pathname === '/' ? `${baseUrl}/${api === 'gemini' ? 'v1beta' : 'v1'}` : baseUrl;
}

/** The providers of PROVIDERS_FILE, in its order. */
function fileProviders(variable: Variables, readText: (path: string) => string): readonly ProviderSettings[] {
  const file = variable('PROVIDERS_FILE');
  const entries = objectIn(file, readText) ?? {};
  return Object.entries(entries).map(([name, entry]) =>
    fileProvider(name, entry, { path: file.value ?? '', variable }),
  );
}

/** The prices of PRICES_FILE, or null if it is not set. @throws {ConfigInvalid} */
export function prices(file: Variable, readText: (path: string) => string): Readonly<Record<string, unknown>> | null {
  const entries = objectIn(file, readText);
  const fault = entries === null ? null : faultIn(entries);
  if (fault === null) return entries;
  const accepted = `${fault.accepted} (model ${JSON.stringify(fault.model.slice(0, 60))})`;
  throw new ConfigInvalid({ variable: file.name, value: file.value ?? '', accepted });
}

/** The JSON object in the file that a variable names, or null if it names none. @throws {ConfigInvalid} */
function objectIn(
  { name, value: path }: Variable,
  readText: (path: string) => string,
): Readonly<Record<string, unknown>> | null {
  if (path === null) return null;
  let value: unknown;
  try {
    // Editors of Windows begin a file with a byte order mark.
    value = JSON.parse(readText(path).replace(/^\uFEFF/, ''));
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'this file is not JSON' : 'this file cannot be read';
    throw new ConfigInvalid({ variable: name, value: path, accepted: `the path of a JSON file: ${reason}` });
  }
  if (isRecord(value)) return value;
  throw new ConfigInvalid({ variable: name, value: path, accepted: 'the path of a JSON file that holds an object' });
}

function fileProvider(
  name: string,
  entry: unknown,
  { path, variable }: { readonly path: string; readonly variable: Variables },
): ProviderSettings {
  const refuse = (accepted: string): never => {
    throw new ConfigInvalid({
      variable: 'PROVIDERS_FILE',
      value: path,
      accepted: `${accepted} (provider ${JSON.stringify(name.slice(0, 60))})`,
    });
  };
  if (!/^[a-z][a-z0-9-]*$/.test(name)) refuse('names of lower-case letters, digits and "-", beginning with a letter');
  if (BUILT_IN_PROVIDERS.includes(name)) refuse('names that are no built-in provider');
  if (!isRecord(entry)) return refuse('an object for each provider');
  const unknown = Object.keys(entry).find((field) => !FILE_FIELDS.has(field));
  if (unknown !== undefined)
    refuse(`the fields ${[...FILE_FIELDS].join(', ')}, not ${JSON.stringify(unknown.slice(0, 60))}`);
  /** How messages name a field. */
  const nameOf = (field: string): string => `PROVIDERS_FILE.${name}.${field}`;
  const text = (field: string): string => {
    const value = entry[field];
    return typeof value === 'string' && value !== '' ? value : refuse(`a text in "${field}"`);
  };
  const of = (field: string): Variable => ({ name: nameOf(field), value: text(field) });
  const api = oneOf(of('api'), Object.keys(WIRES) as readonly ProviderApi[], 'openai');
  const keyEnv = entry['key_env'] === undefined ? null : text('key_env');
  if (keyEnv !== null && !VARIABLE_NAME.test(keyEnv)) {
    refuse('in "key_env" the name of the variable that holds the key, such as LOCAL_KEY, never the key itself');
  }
  const maxCalls = maxCallsIn(entry, refuse);
  return {
    name,
    api,
    maxCalls,
    apiKey: keyEnv === null ? null : secret(variable(keyEnv)),
    baseUrl: withVersion(address(of('base_url')) ?? '', api, nameOf('base_url')),
    model: modelName(of('model')) ?? '',
    settings: { key: keyEnv ?? nameOf('key_env'), baseUrl: nameOf('base_url'), model: nameOf('model') },
  };
}

function maxCallsIn(
  { max_calls: given }: Readonly<Record<string, unknown>>,
  refuse: (accepted: string) => never,
): number | null {
  if (given === undefined) return null;
  const isCount = typeof given === 'number' && Number.isSafeInteger(given) && given >= 1;
  return isCount ? given : refuse('a whole number from 1 in "max_calls"');
}

/** Names in capitals, as of all settings: a key that is typed for the name of its variable almost always has small letters. */
const VARIABLE_NAME = /^[A-Z_][A-Z0-9_]{0,63}$/;

const FILE_FIELDS: ReadonlySet<string> = new Set(['api', 'base_url', 'key_env', 'model', 'max_calls']);
