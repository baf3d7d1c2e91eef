/**
 * The fake EventStoreDB as a process, to be killed and started again: `node fake-event-store-process.js FILE [PORT]`.
 * Prints `listening on URL`.
 */
import { argv, stdout } from 'node:process';
import { fakeEventStore } from './fake-event-store.js';

const [, , file = '', port = '0'] = argv;
const { url } = await fakeEventStore(file, Number(port));
stdout.write(`listening on ${url}\n`);
