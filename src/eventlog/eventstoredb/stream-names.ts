/** This log's streams among all streams of a server. */
import { categoryOf } from '../port.js';

/** Holds the identity of the log; no event of it is shown to anyone. */
const IDENTITY_STREAM = 'log-identity';

/** Begins no stream's name, for there are no control characters in them. */
const NO_STREAM = '\u0000';

export interface StreamNames {
  /** The stream's name on the server. */
  toServer(stream: string): string;
  /** The stream's name here; null when it is another's, the server's own or the identity's. */
  fromServer(serverStream: string): string | null;
  readonly identityStream: string;
  /** What the names of all wanted streams begin with, some others too; null: with anything but a `$`. */
  serverPrefixes(categories: readonly string[] | null): readonly string[] | null;
  /** Whether a stream is of one of the categories; null: of any. */
  isWanted(stream: string, categories: readonly string[] | null): boolean;
}

/** `prefix` is put before every name; it holds no dash. */
export function streamNames(prefix: string): StreamNames {
  return {
    toServer: (stream) => prefix + stream,
    fromServer(serverStream) {
      if (serverStream.startsWith('$') || !serverStream.startsWith(prefix)) return null;
      const stream = serverStream.slice(prefix.length);
      return stream === IDENTITY_STREAM || stream === '' ? null : stream;
    },
    identityStream: prefix + IDENTITY_STREAM,
    serverPrefixes(categories) {
      if (categories === null) return prefix === '' ? null : [prefix];
      return categories.length === 0 ? [NO_STREAM] : categories.map((category) => prefix + category);
    },
    isWanted: (stream, categories) => categories === null || categories.includes(categoryOf(stream)),
  };
}
