/** Liveness and readiness. */
import type { Health, Readiness } from '../../generated/schemas.js';
import { LogCorrupt, LogFull } from '../../eventlog/errors.js';
import { RequestRefused } from '../../api/problems.js';
import type { HttpContext, Route } from '../route.js';

/** The answer of health. */
export const HEALTHY: Health = { status: 'ok', service: 'council-run-service' };

/** The refusal of a readiness probe. */
export function notReady(reason: string): RequestRefused {
  return new RequestRefused(`Not ready: ${reason}`, { status: 503, headers: { 'Retry-After': '1' } });
}

/** GET /api/health and GET /api/health/ready. */
export function healthRoutes(http: HttpContext): readonly Route[] {
  const ready: Readiness = { status: 'ready', service: 'council-run-service' };
  return [
    {
      method: 'GET',
      path: '/api/health',
      access: 'open',
      isProbe: true,
      name: 'getHealth',
      summary: 'Answers while the process runs; never uses the log',
      tag: 'health',
      success: { status: 200, description: 'The process answers', schema: 'health.json' },
      handle: async () => ({ status: 200, body: HEALTHY }),
    },
    {
      method: 'GET',
      path: '/api/health/ready',
      access: 'open',
      isProbe: true,
      name: 'getReadiness',
      summary: 'Answers 200 while the log answers and the read models have caught up',
      tag: 'health',
      success: { status: 200, description: 'The service is ready', schema: 'readiness.json' },
      problems: [503],
      async handle() {
        const [unreachable, uses] = [http.unreachableModels(), http.modelUses()];
        const { fault } = http.ledger.checkpoints;
        const body: Readiness = {
          ...ready,
          ...(unreachable.length > 0 && { models_unreachable: [...unreachable] }),
          ...(uses.length > 0 && { model_calls: [...uses] }),
          ...(fault !== null && { detail: `No checkpoint of the ledger is signed: ${fault}` }),
        };
        const reason = await unreadiness(http);
        if (reason === null) return { status: 200, body };
        throw notReady(reason);
      },
    },
  ];
}

/** Why the service is not ready, or null if it is. A check that fails or hangs counts as a reason. */
async function unreadiness(http: HttpContext): Promise<string | null> {
  const late = 'the event log does not answer, or the read models have not caught up';
  try {
    return (await http.withinDeadline(http.ready())) ? null : late;
  } catch (error) {
    if (error instanceof LogCorrupt) return 'the event log is damaged';
    if (error instanceof LogFull) return 'the disk of the event log is full';
    return late;
  }
}
