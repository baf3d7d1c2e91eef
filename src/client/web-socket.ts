/** Sockets of the host, or handed over: what the client uses of them. */

/** A socket as browsers have it, as far as it is used; that of `ws` will do. */
export interface ClientSocket {
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close' | 'error', listener: () => void): void;
  close(): void;
}

export type WebSocketClass = new (url: string) => ClientSocket;

/** The host's own; undefined: it has none, as Node 20. */
export function hostWebSocket(): WebSocketClass | undefined {
  const { WebSocket } = globalThis as { readonly WebSocket?: WebSocketClass };
  return WebSocket;
}
