/** Councils as models of OpenAI's API: the routes under /v1. */
import type { Door, HttpContext, Route } from '../http/route.js';
import { streamPlaces } from '../http/concurrency.js';
import { chatRoute } from './chat.js';
import type { TaskDeps } from './front-end-task.js';
import { modelRoutes } from './models.js';
import { responseRoutes } from './responses.js';

/** Requests that wait for a run at once; one key holds at most half. Further ones get 503. */
const MAX_WAITING = 10_000;

/** The routes under /v1/models, POST /v1/chat/completions, and the routes under /v1/responses. */
export function openAiDoor(deps: TaskDeps): Door {
  return (http: HttpContext): readonly Route[] => {
    const following = { http, takePlace: streamPlaces(MAX_WAITING) };
    return [...modelRoutes(http), chatRoute(following, deps), ...responseRoutes(following)];
  };
}
