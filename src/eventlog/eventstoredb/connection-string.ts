/** Parses connection strings of EventStoreDB and KurrentDB into options of the client. */
import { readFileSync } from 'node:fs';
import type { ChannelCredentialOptions, Credentials, EndPoint } from '@eventstore/db-client';

export interface Address {
  readonly hosts: readonly EndPoint[];
  /** Whether the one host is a DNS name of all nodes of a cluster. */
  readonly isDiscovered: boolean;
  /** Times in milliseconds, but for the gossip timeout, which is in seconds. */
  readonly options: Readonly<Record<keyof typeof DEFAULTS, number>> & { readonly connectionName: string };
  readonly channel: ChannelCredentialOptions;
  /** Sent with every call over TLS; without TLS the client sends none. Null if the string names no user. */
  readonly credentials: Credentials | null;
  /** The password in each form that a server receives. */
  readonly secrets: readonly string[];
}

/**
 * The client makes one attempt to find the leader, because the next call makes another, and closing the log waits for
 * the current one. It closes a connection that does not answer its pings after interval plus timeout, 12 s.
 */
const DEFAULTS = {
  maxDiscoverAttempts: 1,
  discoveryInterval: 200,
  gossipTimeout: 1,
  keepAliveInterval: 10_000,
  keepAliveTimeout: 2_000,
};

const DEFAULT_PORT = 2113;

const FORM =
  /^(?:esdb|kurrentdb)(?<discover>\+discover)?:\/\/(?:(?<user>[^:@/?]+):(?<password>[^:@/?]+)@)?(?<hosts>[^@/?]+)\/*(?:\?(?<options>.*))?$/;

/**
 * Option names may be in any case, with dashes or underscores; the configuration refuses unknown ones. The client does
 * not receive the string, because it prints the whole string, with the password, when it finds an error in it.
 *
 * @throws {Error} the string is invalid; the message quotes no part that could be secret
 */
export function addressIn(url: string): Address {
  const { discover, user, password, hosts, options = '' } = FORM.exec(url.trim())?.groups ?? {};
  if (hosts === undefined) throw new Error('it does not have the form esdb://user:password@host:port?option=value');
  const given = new Map(options.split('&').map(named));
  const textOf = (name: string): string | undefined => given.get(normalizedName(name));
  const numberOf = (name: keyof typeof DEFAULTS): number => {
    const number = Number(textOf(name) ?? DEFAULTS[name]);
    if (!Number.isInteger(number)) throw new Error(`${name} is not a whole number`);
    return number;
  };
  const isSecure = textOf('tls') !== 'false';
  const channel = isSecure ? certificates(textOf) : { insecure: true };
  const credentials = credentialsOf(user, password);
  if (isSecure && credentials === null) throw new Error('it needs user:password@ before the host, or ?tls=false');
  return {
    hosts: hosts.split(',').map(endPoint),
    isDiscovered: discover !== undefined,
    options: {
      maxDiscoverAttempts: numberOf('maxDiscoverAttempts'),
      discoveryInterval: numberOf('discoveryInterval'),
      gossipTimeout: numberOf('gossipTimeout'),
      keepAliveInterval: numberOf('keepAliveInterval'),
      keepAliveTimeout: numberOf('keepAliveTimeout'),
      connectionName: textOf('connectionName') ?? 'council-run-service',
    },
    channel,
    credentials,
    secrets: credentials === null ? [] : [credentials.password, basic(credentials)],
  };
}

function named(option: string): readonly [string, string] {
  const [name = '', ...value] = option.split('=');
  return [normalizedName(name), decodeURIComponent(value.join('='))];
}

function normalizedName(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}

function endPoint(host: string): EndPoint {
  const [address = '', port = String(DEFAULT_PORT), ...more] = host.trim().split(':');
  const isPort = /^\d{1,5}$/.test(port) && Number(port) < 65_536;
  if (address === '' || !isPort || more.length > 0) throw new Error('a host or its port is invalid');
  return { address, port: Number(port) };
}

function credentialsOf(user: string | undefined, password: string | undefined): Credentials | null {
  if (user === undefined || password === undefined) return null;
  return { username: decodeURIComponent(user), password: decodeURIComponent(password) };
}

/** User and password as RFC 7617 encodes them. */
function basic({ username, password }: Credentials): string {
  return Buffer.from(`${username}:${password}`).toString('base64');
}

function certificates(textOf: (name: string) => string | undefined): ChannelCredentialOptions {
  const [rootCertificate, userCertFile, userKeyFile] = ['tlsCAFile', 'userCertFile', 'userKeyFile'].map((name) => {
    const file = textOf(name);
    return file === undefined ? null : contentOf(file);
  });
  if (!userCertFile !== !userKeyFile) throw new Error('userCertFile needs userKeyFile, and the reverse');
  return {
    ...(rootCertificate && { rootCertificate }),
    ...(userCertFile && userKeyFile && { userCertFile, userKeyFile }),
  };
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new Error(`the certificate file ${file} cannot be read`, { cause });
  }
}
