/** Whether a service may start as it is set up: open to everyone only on purpose. */
import type { Config } from '../config.js';
import { ConfigInvalid } from '../errors.js';
import { isLoopbackAddress } from '../system/host-name.js';

export interface Exposure {
  /** The IP address that HOST names. */
  readonly address: string;
  /** Whether no key was ever added. */
  readonly isOpen: boolean;
}

/** Receives warnings about the start. */
export interface StartLogger {
  warn(fields: object, message: string): void;
}

/**
 * Lets a service without keys be reached from other machines only where `AUTH=off` says so.
 *
 * @throws {ConfigInvalid} otherwise
 */
export function assertGuarded(
  { host, auth }: Pick<Config, 'host' | 'auth'>,
  { address, isOpen }: Exposure,
  logger: StartLogger,
): void {
  if (auth === 'off' && !isOpen)
    logger.warn({}, 'AUTH=off is passed over: a key was added once, so that one is needed');
  if (!isOpen || isLoopbackAddress(address)) return;
  if (auth === 'off') {
    logger.warn({ host }, `AUTH=off: whoever reaches ${host} may do everything, no key is asked for`);
    return;
  }
  const accepted =
    'without keys only a loopback address (add a key with "council keys add", ' +
    'or set AUTH=off to let everybody do everything)';
  throw new ConfigInvalid({ variable: 'HOST', value: host, accepted });
}
