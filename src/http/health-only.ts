/** The HTTP application before the context is created: answers health and refuses everything else with the reason. */
import type { RequestListener } from 'node:http';
import type { Context } from 'koa';
import Koa from 'koa';
import { LogUnavailable } from '../eventlog/errors.js';
import { sendAnswer } from './answer.js';
import type { AnsweringDeps } from './answering.js';
import { answering } from './answering.js';
import { HEALTHY, notReady } from './routes/health.js';

/** Paths of health, which the service answers as soon as it listens. */
const HEALTH_PATH = /^\/api\/health(\/ready)?\/?(\?|$)/;

/** Whether a request target is a health path. */
export function isHealthPath(target: string): boolean {
  return HEALTH_PATH.test(target);
}

/** @param isAway whether the log has failed to answer */
export function healthOnlyApp(deps: AnsweringDeps, isAway: () => boolean): RequestListener {
  const app = new Koa();
  // Only errors of writing an answer arrive here: the client has gone.
  app.on('error', () => undefined);
  app.use((ctx, next) => answering(ctx, next, deps));
  app.use((ctx) => {
    if (!isReadingHealth(ctx)) throw new LogUnavailable();
    if (/ready\/?$/.test(ctx.path))
      throw notReady(isAway() ? 'the event log cannot be reached' : 'the service is starting');
    sendAnswer(ctx, { status: 200, body: HEALTHY }, deps);
  });
  const serve = app.callback();
  return (request, response) => void serve(request, response);
}

function isReadingHealth({ method, path }: Context): boolean {
  return (method === 'GET' || method === 'HEAD') && isHealthPath(path);
}
