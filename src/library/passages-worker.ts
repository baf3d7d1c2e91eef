/** The thread of the passage index: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveCalls } from '../worker-calls.js';
import type { PassagesReady, PassagesSetup } from './passages-index.js';
import { openPassagesStore } from './passages-store.js';

const store = openPassagesStore(workerData as PassagesSetup);
const told: PassagesReady = { standing: store.standing, count: store.count() };
serveCalls(parentPort, { service: store, told });
