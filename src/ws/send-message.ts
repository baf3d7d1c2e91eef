import type { WebSocket } from 'ws';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';

/** Unsent bytes at which a slow reader is given up (contract, section 3). It can connect again and lose nothing. */
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
