/** WebSockets, the host's or given as an option. */

/** The part of a WebSocket that is used here; the one of the package `ws` fits. */
export interface ClientSocket {
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close' | 'error', listener: () => void): void;
  close(): void;
}

export type WebSocketClass = new (url: string) => ClientSocket;

/** The host's own; undefined: it has none, as in Node 20. */
export function hostWebSocket(): WebSocketClass | undefined {
  const { WebSocket } = globalThis as { readonly WebSocket?: WebSocketClass };
  return WebSocket;
}
