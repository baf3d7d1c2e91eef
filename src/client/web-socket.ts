/** The part of a WebSocket that the client uses. That of the package `ws` fits. */
export interface ClientSocket {
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close' | 'error', listener: () => void): void;
  close(): void;
}

export type WebSocketClass = new (url: string) => ClientSocket;

/** The WebSocket of the host, or undefined if it has none, as Node 20. */
export function hostWebSocket(): WebSocketClass | undefined {
  const { WebSocket } = globalThis as { readonly WebSocket?: WebSocketClass };
  return WebSocket;
}
