/** Problems on a connection that no HTTP response belongs to: refused upgrades and requests that Node cannot read. */
import { STATUS_CODES } from 'node:http';

/** The text of an answer after which the connection closes. */
export function rawAnswer(status: number, detail: string, headers: Readonly<Record<string, string>> = {}): string {
  const body = JSON.stringify({ detail });
  const fields = {
    Connection: 'close',
    'Content-Type': 'application/json; charset=utf-8',
    ...headers,
    'Content-Length': Buffer.byteLength(body),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
