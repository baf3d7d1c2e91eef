/** Warnings about settings that have no effect: misspelt ones, those that need another setting, missing keys. */
import type { Providers, ProviderSettings } from './config-providers.js';

/**
 * One line for each variable that is probably meant as a setting and has no effect, and for each missing key.
 *
 * @param known names of all settings
 */
export function settingWarnings(
  environment: Readonly<Record<string, string | undefined>>,
  known: ReadonlySet<string>,
  { configured, default: provider }: Providers,
): readonly string[] {
  const names = Object.keys(environment).filter((name) => environment[name] && /^\w+$/.test(name));
  const unset = [...known].filter((name) => !environment[name]);
  const keyless = configured.filter(
    ({ apiKey, settings }) =>
      apiKey === null && settings.baseUrl.startsWith('PROVIDERS_FILE') && known.has(settings.key),
  );
  return [...keyless.map(keyWarning), ...names.flatMap(nameWarning)];

  function nameWarning(name: string): readonly string[] {
    const meant = known.has(name) ? undefined : unset.find((each) => isMeant(each, name));
    if (meant !== undefined) return [`${name} has no effect: the name of the setting is ${meant}`];
    const missing = unset.find((each) => each === NEEDED.get(name));
    if (missing !== undefined) return [`${name} has no effect: set ${missing} too`];
    if (name === 'OFFLINE_LATENCY_MS' && provider !== 'offline')
      return [`${name} slows only nodes that name the offline model: the default provider is ${provider}`];
    const prefix = /^([A-Z]+)_(?:EMBEDDING_)?MODEL$/.exec(name)?.[1] ?? '';
    const isUsed = configured.some((each) => each.name.toUpperCase() === prefix);
    if (isUsed || !known.has(`${prefix}_BASE_URL`)) return [];
    const needed = known.has(`${prefix}_API_KEY`) ? `${prefix}_API_KEY or ${prefix}_BASE_URL` : `${prefix}_BASE_URL`;
    return [`${name} has no effect: set ${needed} too`];
  }
}

function keyWarning({ name, settings: { key } }: ProviderSettings): string {
  return `PROVIDERS_FILE.${name}.key_env names ${key}, which is not set: its calls carry no key`;
}

/** Settings that have an effect only beside another one. */
const NEEDED: ReadonlyMap<string, string> = new Map([
  ['EVENTSTORE_PREFIX', 'EVENTSTORE_URL'],
  ['HEARTBEAT_MS', 'EVENTSTORE_URL'],
  ['SUSPECT_AFTER_MS', 'EVENTSTORE_URL'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  ['OTEL_BSP_SCHEDULE_DELAY', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
]);

/** Names of settings in other programs, other than those that `compact` translates. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['OLLAMA_HOST', 'OLLAMA_BASE_URL'],
  ['LLM_PROVIDER', 'MODEL_PROVIDER'],
  ['DEFAULT_PROVIDER', 'MODEL_PROVIDER'],
  ['EVENTSTORE_CONNECTION_STRING', 'EVENTSTORE_URL'],
  ['EVENTSTOREDB_URL', 'EVENTSTORE_URL'],
  ['KURRENTDB_URL', 'EVENTSTORE_URL'],
]);

/** Whether a name is the name of a setting in another program, lacks its unit, or differs in underscores, case or one character. */
function isMeant(setting: string, name: string): boolean {
  const [wanted, given] = [setting.replaceAll('_', ''), compact(name)];
  if (OTHER_NAMES.get(name) === setting || wanted === `${given}MS`) return true;
  return (
    wanted === given || (wanted.length >= MIN_NEAR_CHARS && isNear(wanted, name.replaceAll('_', '').toUpperCase()))
  );
}

/** The name in capitals without underscores, with words of other programs replaced by those of the settings. */
function compact(name: string): string {
  return name
    .toUpperCase()
    .replaceAll('_', '')
    .replace(/^GOOGLE(?:GENERATIVE)?(?:AI)?(?=API|KEY|MODEL)|^GOOGLEGEMINI/, 'GEMINI')
    .replace(/^CLAUDE/, 'ANTHROPIC')
    .replace(/(?:API)?KEY$/, 'APIKEY')
    .replace(/(?:API)?BASE$|(?:BASE|API)?UR[LI]$/, 'BASEURL');
}

/** Whether one character was added, left out or replaced, or two were swapped. */
function isNear(wanted: string, given: string): boolean {
  let begin = 0;
  while (begin < wanted.length && wanted[begin] === given[begin]) begin += 1;
  const [left, right] = [wanted.slice(begin), given.slice(begin)];
  const isSwapped = left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2);
  return isSwapped || left.slice(1) === right || left === right.slice(1) || left.slice(1) === right.slice(1);
}

/** Shorter settings resemble variables of other programs. */
const MIN_NEAR_CHARS = 8;
