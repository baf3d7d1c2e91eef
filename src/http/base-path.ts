/**
 * The service below a path of another server. A proxy may remove BASE_PATH from the path of a request or keep it: the service
 * reads both as the same. What it sends to clients has the path in front.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Context } from 'koa';

/** Headers of answers that hold a path of the service, alone or in angle brackets. */
const WITH_PATH = ['Location', 'Content-Location', 'Link'];

/** Removes the base path from the targets of a server's requests. Call it before other listeners are added. */
export function removeBasePath(server: Server, basePath: string): void {
  if (basePath === '') return;
  const remove = (request: IncomingMessage): void => {
    request.url = withoutBasePath(request.url ?? '', basePath);
  };
  server.on('request', remove).on('upgrade', remove).on('checkExpectation', remove);
}

/** A request target, which may be in absolute form, without the base path. Another target stays as it is. */
export function withoutBasePath(target: string, basePath: string): string {
  const [origin = ''] = /^(?:https?|wss?):\/\/[^/?]*/i.exec(target) ?? [];
  const local = target.slice(origin.length);
  const rest = local.slice(basePath.length);
  if (!local.startsWith(basePath) || !/^([/?]|$)/.test(rest)) return target;
  return origin + (rest.startsWith('/') ? rest : `/${rest}`);
}

/** Puts the base path before the paths in the headers of an answer. */
export function addBasePath({ response }: Pick<Context, 'response'>, basePath: string): void {
  for (const name of WITH_PATH) {
    const value = response.get(name);
    if (/^<?\//.test(value)) response.set(name, value.replace('/', `${basePath}/`));
  }
}
