import type { ServerResponse } from 'node:http';

/** Calls back once a response is sent or given up, at once when it is already. */
export function whenClosed(response: ServerResponse, callBack: () => void): void {
  if (response.closed || response.writableEnded) callBack();
  else response.once('close', callBack);
}
