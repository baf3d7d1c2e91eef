/** Requests that Node refuses before any route sees them: still answered with a status and a `detail`. */
import type { IncomingMessage } from 'node:http';
import { ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

const UNREADABLE = { status: 400, detail: 'The request cannot be read as HTTP' };

/** By Node's error code. */
const REFUSALS: Readonly<Record<string, { readonly status: number; readonly detail: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The request target and headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request did not arrive in time' },
};

/** A listener for the server's `clientError`. */
export function refuseUnreadable(error: Error & { readonly code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable || hasAnswerBegun(socket)) {
    socket.destroy();
    return;
  }
  const { status, detail } = REFUSALS[error.code ?? ''] ?? UNREADABLE;
  const body = JSON.stringify({ detail });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** A listener for the server's `checkExpectation`: a request that expects anything but `100-continue`. */
export function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify({
    detail: `Expect ${JSON.stringify(request.headers.expect)} is not met: 100-continue is`,
  });
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(417, { Connection: 'close', ...headers }).end(body);
}

/** Node's documentation of `clientError` names no other way to find out. */
function hasAnswerBegun(socket: Duplex): boolean {
  const answer: unknown = Reflect.get(socket, '_httpMessage');
  return answer instanceof ServerResponse && answer.headersSent;
}
