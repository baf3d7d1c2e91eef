/** Classifies the server's errors. */
import { Metadata, status } from '@grpc/grpc-js';

/**
 * `not-leader`: ask the node it names. `lost`: the connection is gone or unusable. `missing` and `deleted` concern the
 * stream that was read, `denied` the credentials. `too-slow`: the server dropped a subscriber that did not keep up.
 */
export type Fault = 'not-leader' | 'lost' | 'missing' | 'deleted' | 'denied' | 'too-slow' | 'other';

const BY_CODE: Readonly<Record<number, Fault>> = {
  [status.CANCELLED]: 'lost',
  [status.INTERNAL]: 'lost',
  [status.UNAVAILABLE]: 'lost',
  [status.ABORTED]: 'too-slow',
  [status.PERMISSION_DENIED]: 'denied',
  [status.UNAUTHENTICATED]: 'denied',
};

/** The server names its own errors in a trailer, which is more precise than the code. */
const BY_NAME: Readonly<Record<string, Fault>> = {
  'not-leader': 'not-leader',
  'stream-not-found': 'missing',
  'stream-deleted': 'deleted',
  'access-denied': 'denied',
};

/** The meaning of a gRPC error; any other error is `other`. */
export function faultOf(error: unknown): Fault {
  if (!(error instanceof Error)) return 'other';
  const code = 'code' in error && typeof error.code === 'number' ? error.code : null;
  if (code === null) return 'other';
  return BY_NAME[trailerOf(error, 'exception')] ?? BY_CODE[code] ?? 'other';
}

/** `host:port` of the leader, if the error of a follower names it; else null. */
export function leaderNamedIn(error: unknown): string | null {
  const [host, port] = [trailerOf(error, 'leader-endpoint-host'), trailerOf(error, 'leader-endpoint-port')];
  return host === '' || port === '' ? null : `${host}:${port}`;
}

function trailerOf(error: unknown, name: string): string {
  if (!(error instanceof Error && 'metadata' in error && error.metadata instanceof Metadata)) return '';
  return String(error.metadata.get(name)[0] ?? '');
}
