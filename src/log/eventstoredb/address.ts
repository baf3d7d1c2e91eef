/** Connection strings as this adapter hands them to the client. */

/**
 * What is set where the string is silent. A failed discovery is begun anew by the next call, so few attempts do; the
 * gossip timeout is in seconds, the others are milliseconds. A connection that answers no ping is given up after
 * interval and timeout, 12 s; a call is given up long before.
 */
const DEFAULTS: Readonly<Record<string, string>> = {
  maxDiscoverAttempts: '5',
  discoveryInterval: '200',
  gossipTimeout: '1',
  keepAliveInterval: '10000',
};

/** Milliseconds. Several values, because gRPC shares one connection among all channels with equal options. */
const KEEP_ALIVE_TIMEOUT_MS = 2_000;
const KEEP_ALIVE_VARIANTS = 16;

/**
 * The client's connection string for the nth connection to a server: `kurrentdb://` is `esdb://` by another name, and
 * no two successive connections have equal options, so that none inherits the other's hung socket.
 */
export function connectionString(url: string, nth: number): string {
  const [base = '', query = ''] = url.trim().split('?', 2);
  const options = new Map(query.split('&').flatMap((pair) => (pair === '' ? [] : [named(pair)])));
  const isSet = (name: string): boolean => [...options.keys()].some((each) => flat(each) === flat(name));
  for (const [name, value] of Object.entries(DEFAULTS)) if (!isSet(name)) options.set(name, value);
  const chosen = [...options].find(([name]) => flat(name) === flat('keepAliveTimeout'));
  const timeoutMs = Number(chosen?.[1] ?? KEEP_ALIVE_TIMEOUT_MS);
  if (timeoutMs >= 0) options.set(chosen?.[0] ?? 'keepAliveTimeout', String(timeoutMs + (nth % KEEP_ALIVE_VARIANTS)));
  const scheme = base.replace(/^kurrentdb(?=\+|:)/, 'esdb').replace(/\/+$/, '');
  return `${scheme}?${[...options].map(([name, value]) => `${name}=${value}`).join('&')}`;
}

function named(pair: string): readonly [string, string] {
  const [name = '', ...value] = pair.split('=');
  return [name, value.join('=')];
}

/** The client takes its options' names in any case, with dashes or underscores. */
function flat(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '');
}
