/**
 * The fake EventStoreDB as a process that tests kill and start again: `node fake-event-store-process.js FILE [PORT]`.
 * Prints `listening on URL`.
 */
import { argv, stdout } from 'node:process';
import { fakeEventStore } from './fake-event-store.js';

const [, , file = '', port = '0'] = argv;
const { url } = await fakeEventStore(file, Number(port));
stdout.write(`listening on ${url}\n`);
