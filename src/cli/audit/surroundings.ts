/** What the commands on a run's record are given. */
import type { ReplayMeans } from '../../run/replay.js';
import type { Paint } from './paint.js';
import type { Print } from './printer.js';
import type { RunRecords } from './record.js';
import type { ServiceRecords } from './service-records.js';

export interface Surroundings {
  /** Opens what the wish asks of: nothing is touched before. */
  readonly records: () => RunRecords;
  readonly service: (url: string) => ServiceRecords;
  /** The bytes of a file, or of standard input for `-`. */
  readonly bytesOf: (file: string) => AsyncIterable<Uint8Array>;
  readonly print: Print;
  readonly tell: (text: string) => void;
  readonly paint: Paint;
  readonly isTerminal: boolean;
  /** Columns of the terminal; null where there is none. */
  readonly columns: number | null;
  readonly means: ReplayMeans;
  readonly uuid: () => string;
  /** Ends it. */
  readonly signal: AbortSignal;
}
