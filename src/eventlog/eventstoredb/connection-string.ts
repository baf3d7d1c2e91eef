/** Parses the connection strings of EventStoreDB and KurrentDB. */
import { readFileSync } from 'node:fs';
import type { ChannelCredentials, ChannelOptions } from '@grpc/grpc-js';
import { credentials } from '@grpc/grpc-js';

export interface Address {
  /** `host:port`, at least one. */
  readonly hosts: readonly string[];
  /** Whether the hosts form a cluster and are asked which node leads it. */
  readonly isCluster: boolean;
  readonly security: ChannelCredentials;
  readonly channelOptions: ChannelOptions;
  /** Metadata of each call. */
  readonly headers: Readonly<Record<string, string>>;
  /** The password, in each form that a server comes to know. */
  readonly secrets: readonly string[];
  /** How often all hosts are asked for the leader, the pause between rounds, and the timeout of one question. */
  readonly discovery: { readonly maxAttempts: number; readonly intervalMs: number; readonly timeoutMs: number };
}

/**
 * Defaults. The next call repeats a failed discovery, so few attempts suffice; the gossip timeout is in seconds, the
 * others are milliseconds. A connection that answers no ping is given up after interval and timeout, 12 s; a call is
 * given up long before.
 */
const DEFAULTS = {
  maxDiscoverAttempts: 5,
  discoveryInterval: 200,
  gossipTimeout: 1,
  keepAliveInterval: 10_000,
  keepAliveTimeout: 2_000,
};

const DEFAULT_PORT = 2113;

/** Most bytes of an answer: other programs may have written events of up to 16 MiB. */
const MAX_RECEIVED = 17 * 1024 * 1024;

const FORM =
  /^(?:esdb|kurrentdb)(?<discover>\+discover)?:\/\/(?:(?<user>[^:@/?]+):(?<password>[^:@/?]+)@)?(?<hosts>[^@/?]+)\/*(?:\?(?<options>.*))?$/;

/**
 * Option names may be in any case, with dashes or underscores; unknown options are ignored.
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
  const names = hosts.split(',').map(withPort);
  return {
    hosts: names,
    isCluster: discover !== undefined || names.length > 1,
    security: isSecure ? secured(textOf) : credentials.createInsecure(),
    channelOptions: {
      // -1 turns it off.
      'grpc.keepalive_time_ms': numberOf('keepAliveInterval'),
      ...(numberOf('keepAliveTimeout') >= 0 && { 'grpc.keepalive_timeout_ms': numberOf('keepAliveTimeout') }),
      'grpc.max_receive_message_length': MAX_RECEIVED,
      // Otherwise channels share sockets, and a new one would inherit the hung socket of the one it replaces.
      'grpc.use_local_subchannel_pool': 1,
      // A channel that is closed after a refused connection still tries once more, and nobody closes the socket if that
      // succeeds: it shall try at once, not when the server is back.
      'grpc.initial_reconnect_backoff_ms': 1,
    },
    headers: {
      'connection-name': textOf('connectionName') ?? 'council-run-service',
      'requires-leader': 'true',
      // A password is never sent unencrypted.
      ...(isSecure &&
        user !== undefined &&
        password !== undefined && { authorization: `Basic ${basic(user, password)}` }),
    },
    secrets: secretsOf(user, password),
    discovery: {
      maxAttempts: numberOf('maxDiscoverAttempts'),
      intervalMs: numberOf('discoveryInterval'),
      timeoutMs: numberOf('gossipTimeout') * 1_000,
    },
  };
}

function named(option: string): readonly [string, string] {
  const [name = '', ...value] = option.split('=');
  return [flat(name), decodeURIComponent(value.join('='))];
}

function flat(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}

function withPort(host: string): string {
  const [name = '', port = String(DEFAULT_PORT), ...more] = host.trim().split(':');
  const isPort = /^\d{1,5}$/.test(port) && Number(port) < 65_536;
  if (name === '' || !isPort || more.length > 0) throw new Error('a host is no name, or its port none');
  return `${name}:${port}`;
}

/** User and password as RFC 7617 encodes them. */
function basic(user: string, password: string): string {
  return Buffer.from(`${decodeURIComponent(user)}:${decodeURIComponent(password)}`).toString('base64');
}

function secretsOf(user: string | undefined, password: string | undefined): readonly string[] {
  return user === undefined || password === undefined ? [] : [decodeURIComponent(password), basic(user, password)];
}

function secured(textOf: (name: string) => string | undefined): ChannelCredentials {
  const [authority, certificate, key] = ['tlsCAFile', 'userCertFile', 'userKeyFile'].map((name) => {
    const file = textOf(name);
    return file === undefined ? null : contentOf(file);
  });
  if ((certificate === null) !== (key === null)) throw new Error('userCertFile goes with userKeyFile');
  return credentials.createSsl(authority, key, certificate);
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new Error(`the certificate file ${file} cannot be read`, { cause });
  }
}
