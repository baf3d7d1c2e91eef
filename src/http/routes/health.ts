/** Whether the process answers, and whether it is any use to send it work. */
import type { Health, Readiness } from '../../generated/schemas.js';
import { RequestRefused } from '../../api/problems.js';
import type { HttpContext, Route } from '../route.js';

/** GET /api/health and GET /api/health/ready. */
export function healthRoutes(http: HttpContext): readonly Route[] {
  const healthy: Health = { status: 'ok', service: 'council-run-service' };
  const ready: Readiness = { status: 'ready', service: 'council-run-service' };
  return [
    {
      method: 'GET',
      path: '/api/health',
      access: 'open',
      isUnlimited: true,
      name: 'getHealth',
      summary: 'Tells that the process answers; never touches the log',
      tag: 'health',
      success: { status: 200, description: 'The process answers', schema: 'health.json' },
      handle: async () => ({ status: 200, body: healthy }),
    },
    {
      method: 'GET',
      path: '/api/health/ready',
      access: 'open',
      isUnlimited: true,
      name: 'getReadiness',
      summary: 'Tells whether the log answers and the read models have caught up',
      tag: 'health',
      success: { status: 200, description: 'Send work', schema: 'readiness.json' },
      problems: [503],
      async handle() {
        const unreachable = http.unreachableModels();
        const body = unreachable.length === 0 ? ready : { ...ready, models_unreachable: [...unreachable] };
        if (await isReady(http)) return { status: 200, body };
        const detail = 'Not ready: the event log does not answer, or the read models have not caught up';
        throw new RequestRefused(detail, { status: 503, headers: { 'Retry-After': '1' } });
      },
    },
  ];
}

/** A check that fails or hangs is an answer too. */
async function isReady(http: HttpContext): Promise<boolean> {
  try {
    return await http.inTime(http.ready());
  } catch {
    return false;
  }
}
