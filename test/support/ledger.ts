import { readConfig } from '../../src/config.js';

/** Settings with a checkpoint a second at most. */
export const LEDGER_AT_ONCE = readConfig({ CHECKPOINT_INTERVAL_S: '1' }).ledger;
