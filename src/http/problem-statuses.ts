/** The statuses of the problems of a route, for the OpenAPI document. */
import { scopesOf } from '../api/access/authentication.js';
import type { Route } from './route.js';

/** The statuses of a route's problems: its own, and those that follow from its parameters. */
export function problemStatuses(route: Route): readonly number[] {
  const { path, body, query, isKeyed = false, hasUnknown = path.includes('{'), problems = [] } = route;
  const statuses = new Set([...problems, ...accessProblems(route)]);
  if (route.isProbe !== true) statuses.add(429);
  if (hasUnknown) statuses.add(404);
  if (isKeyed) statuses.add(409);
  if (body !== undefined) statuses.add(408).add(413).add(415).add(503);
  if (body !== undefined || query !== undefined || isKeyed) statuses.add(422);
  return [...statuses].sort((a, b) => a - b);
}

/** The statuses of problems before a route is reached. */
function accessProblems({ method, access, isProbe = false }: Route): readonly number[] {
  const forbidden = method === 'GET' ? [] : [403];
  // 400: a request without a Host header, or with two.
  if (access === 'open') return [isProbe ? 400 : 421, ...forbidden];
  if (scopesOf(access).length > 0) forbidden.push(403);
  // 503: the log may have to be asked for the key.
  return [421, ...forbidden, 401, 429, 503];
}
