/** Reads the connection strings of EventStoreDB and KurrentDB into the options of the client. */
import { readFileSync } from 'node:fs';
import type { ChannelCredentialOptions, Credentials, EndPoint } from '@eventstore/db-client';

export interface Address {
  readonly hosts: readonly EndPoint[];
  /** Whether the one host is a DNS name of all nodes of a cluster. */
  readonly isDiscovered: boolean;
  /** Times in milliseconds, but for the gossip timeout, which is in seconds. */
  readonly options: Readonly<Record<keyof typeof DEFAULTS, number>> & { readonly connectionName: string };
  readonly channel: ChannelCredentialOptions;
  /**
   * Sent with every call over TLS. Without TLS the client sends no credentials; they only make it send each append as a
   * call of its own.
   */
  readonly credentials: Credentials;
  /** The password, in each form in which a server receives it. */
  readonly secrets: readonly string[];
}

/**
 * One attempt to find the leader: the next call makes another, and a closing log waits for the one under way. A
 * connection that answers no ping is closed after interval and timeout, 12 s.
 */
const DEFAULTS = {
  maxDiscoverAttempts: 1,
  discoveryInterval: 200,
  gossipTimeout: 1,
  keepAliveInterval: 10_000,
  keepAliveTimeout: 2_000,
};

const DEFAULT_PORT = 2113;

/** Select the unary append where the string names no user. Without TLS the client does not send them. */
const UNSENT: Credentials = { username: 'nobody', password: 'nobody' };

const FORM =
  /^(?:esdb|kurrentdb)(?<discover>\+discover)?:\/\/(?:(?<user>[^:@/?]+):(?<password>[^:@/?]+)@)?(?<hosts>[^@/?]+)\/*(?:\?(?<options>.*))?$/;

/**
 * Option names may be in any case, with dashes or underscores; the configuration refuses unknown ones. The client is
 * given no string, because it prints the whole of one that it finds fault with.
 *
 * @throws {Error} the string cannot be used; the message quotes nothing that could be secret
 */
export function addressIn(url: string): Address {
  const { discover, user, password, hosts, options = '' } = FORM.exec(url.trim())?.groups ?? {};
  if (hosts === undefined) throw new Error('it has not the form esdb://user:password@host:port?option=value');
  const given = new Map(options.split('&').map(named));
  const textOf = (name: string): string | undefined => given.get(flat(name));
  const numberOf = (name: keyof typeof DEFAULTS): number => {
    const number = Number(textOf(name) ?? DEFAULTS[name]);
    if (!Number.isInteger(number)) throw new Error(`${name} is no whole number`);
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
    credentials: credentials ?? UNSENT,
    secrets: credentials === null ? [] : [credentials.password, basic(credentials)],
  };
}

function named(option: string): readonly [string, string] {
  const [name = '', ...value] = option.split('=');
  return [flat(name), decodeURIComponent(value.join('='))];
}

function flat(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}

function endPoint(host: string): EndPoint {
  const [address = '', port = String(DEFAULT_PORT), ...more] = host.trim().split(':');
  const isPort = /^\d{1,5}$/.test(port) && Number(port) < 65_536;
  if (address === '' || !isPort || more.length > 0) throw new Error('a host is no name, or its port none');
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
  if (!userCertFile !== !userKeyFile) throw new Error('userCertFile goes with userKeyFile');
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
