/** Listens on the address that the settings name. */
import { lookup } from 'node:dns/promises';
import type { Server } from 'node:http';
import type { Config } from '../config.js';
import { ConfigInvalid } from '../errors.js';

/** The address that HOST names. @throws {ConfigInvalid} if it names none */
export async function addressOf(config: Config): Promise<string> {
  try {
    return (await lookup(config.host)).address;
  } catch (error) {
    throw error instanceof Error ? addressFault(error, config) : error;
  }
}

/** Listens on the address. @returns `http://HOST:PORT`, where the server is reached */
export async function listen(server: Server, { host, port }: Config, address: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(addressFault(error, { host, port })));
    server.listen(port, address, () => resolve());
  });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server listens on no port');
  const name = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `http://${name}:${bound.port}`;
}

function addressFault(error: Error, { host, port }: { readonly host: string; readonly port: number }): Error {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'EADDRINUSE' || code === 'EACCES') {
    return new ConfigInvalid({
      variable: 'PORT',
      value: String(port),
      accepted: `another port, or 0 for any free one (${code})`,
    });
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new ConfigInvalid({ variable: 'HOST', value: host, accepted: `an address of this machine (${code})` });
  }
  return error;
}
