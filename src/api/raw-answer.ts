/** Problems on a connection that no HTTP response belongs to: refused upgrades and requests that Node cannot read. */
import { STATUS_CODES } from 'node:http';
import type { FormedProblem } from './problem-form.js';

/** The text of an answer after which the connection closes. */
export function rawAnswer({ status, body, headers }: FormedProblem): string {
  const text = JSON.stringify(body);
  const fields = {
    Connection: 'close',
    'Content-Type': 'application/json; charset=utf-8',
    ...headers,
    'Content-Length': Buffer.byteLength(text),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`;
}
