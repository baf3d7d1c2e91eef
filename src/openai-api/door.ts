/** Councils as models of OpenAI's API: the routes under /v1. */
import type { Door, HttpContext, Route } from '../http/route.js';
import { streamPlaces } from '../http/concurrency.js';
import { chatRoute } from './chat.js';
import type { Model } from './default-model.js';
import type { FollowDeps } from './followed-run.js';
import { modelRoutes } from './models.js';
import { responseRoutes } from './responses.js';

export interface OpenAiDoorDeps extends Pick<FollowDeps, 'isFollowed'> {
  /** The default model, for the tasks of chat front ends. */
  readonly model: Model;
  /** How long a call to the default model may take, in milliseconds. */
  readonly modelTimeoutMs: number;
}

/** Requests that wait for a run at once; further ones are refused with 503. */
const MAX_WAITING = 10_000;

/** The routes under /v1/models, POST /v1/chat/completions, and the routes under /v1/responses. */
export function openAiDoor({ isFollowed, ...deps }: OpenAiDoorDeps): Door {
  return (http: HttpContext): readonly Route[] => {
    const following = { http, isFollowed, takePlace: streamPlaces(MAX_WAITING) };
    return [...modelRoutes(http), chatRoute(following, deps), ...responseRoutes(following)];
  };
}
