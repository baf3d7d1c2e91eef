/** Checks and warnings at the start of the service: open addresses, lost keys, shared folders. */
import type { Config } from '../config.js';
import { ConfigInvalid } from '../errors.js';
import type { KeyStore } from '../keys/store.js';
import { isLoopbackAddress } from '../system/addresses.js';
import type { ServiceDeps } from './context-deps.js';

type AuthConfig = Pick<Config, 'host' | 'auth' | 'eventStore'>;

/**
 * Checks the keys. The caller calls it before the service changes anything else in its data directory.
 *
 * @throws {ConfigInvalid} if the service could be reached from other machines without a key, or if keys could get lost
 */
export async function checkKeys(
  config: AuthConfig,
  keys: KeyStore,
  { address, deps }: { readonly address: string; readonly deps: ServiceDeps },
): Promise<void> {
  assertNotOpenToOthers(config, keys, address);
  await warnOfUnusedLog(config, keys, deps);
}

/** Lets other machines reach a service without keys only if `AUTH=off`. */
function assertNotOpenToOthers({ host, auth }: AuthConfig, keys: KeyStore, address: string): void {
  if (!keys.isOpen || auth === 'off' || isLoopbackAddress(address)) return;
  const accepted =
    'a loopback address, or add a key with "council keys add", or set AUTH=off to allow every caller everything';
  throw new ConfigInvalid({ variable: 'HOST', value: host, accepted });
}

/**
 * Warns of an embedded log that lies unused in the data directory, because EVENTSTORE_URL is set. @throws
 * {ConfigInvalid} if its keys could get lost
 */
async function warnOfUnusedLog({ eventStore }: AuthConfig, keys: KeyStore, deps: ServiceDeps): Promise<void> {
  if (eventStore === null) return;
  const { dataDir, system, logger } = deps;
  // Loaded only if EVENTSTORE_URL is set.
  const { unusedLogWarning: noticeOfLog } = await import('./log-in-folder.js');
  const notice = await noticeOfLog(dataDir.logFile, { system, url: eventStore.url, keys: keys.list() });
  if (notice !== null) logger.warn({}, notice);
}

/** Warns of a data directory that other users have access to, and of `AUTH=off` where it matters or has no effect. */
export function warnOfExposure(
  { host, auth }: AuthConfig,
  keys: Pick<KeyStore, 'isOpen'>,
  { address, deps }: { readonly address: string; readonly deps: ServiceDeps },
): void {
  const { dataDir, logger } = deps;
  if (dataDir.isExposed) {
    const text = 'DATA_DIR: other users of this machine have access to it; run chmod -R go-rwx on it';
    logger.warn({ dataDir: dataDir.path }, text);
  }
  if (auth === 'on') return;
  if (!keys.isOpen) logger.warn({}, 'AUTH=off has no effect: the log holds keys, so requests need one');
  else if (!isLoopbackAddress(address))
    logger.warn({ host }, `AUTH=off: every client that reaches ${host} may do everything without a key`);
}
