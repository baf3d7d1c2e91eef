/** Why the service closes a socket: RFC 6455 section 7.4.1 and its registry, and one code of our own. */
import type { WebSocket } from 'ws';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';

/** The run has ended, or there is none: nothing more will come. */
export const CLOSE_NORMAL = 1000;
/** The service stops; connect again, here or to another instance. */
export const CLOSE_RESTART = 1012;
/** The run could not be read, or its record was found corrupt. */
export const CLOSE_FAULT = 1011;
/** The client does not read fast enough (contract, section 3). */
export const CLOSE_TOO_SLOW = 4408;

/** Unsent bytes at which a slow reader is cut off (contract, section 3). It can connect again and lose nothing. */
const MAX_UNSENT_BYTES = 1024 * 1024;

/**
 * Sends a message on a socket that is open; on another it does nothing.
 *
 * @param onSent called once it has left this process, or cannot any more
 * @returns false when the reader has become too slow
 */
export function sendMessage(socket: WebSocket, message: ChannelMessage | RichMessage, onSent?: () => void): boolean {
  if (socket.readyState !== socket.OPEN) {
    onSent?.();
    return true;
  }
  socket.send(JSON.stringify(message), () => onSent?.());
  return socket.bufferedAmount <= MAX_UNSENT_BYTES;
}
