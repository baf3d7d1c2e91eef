/** Backups of the log. */
import { RequestRefused } from '../../api/problems.js';
import { bodyOf } from '../body.js';
import type { HttpContext, Route } from '../route.js';

/** The routes at /api/backup. */
export function backupRoutes(http: HttpContext): readonly Route[] {
  return [lastRoute(http), startRoute(http)];
}

/** What both routes have in common. */
const BACKUP = { path: '/api/backup', access: 'admin', tag: 'backup' } as const;

function startRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'backup-request.json', { isRequired: true });
  return {
    ...BACKUP,
    method: 'POST',
    name: 'startBackup',
    summary: 'Starts a backup of the log into a new folder of the machine of the service',
    description:
      'The folder holds every run acknowledged before the request, and appears once the copy is complete and verified. The ' +
      'backup goes on without its client: poll `GET /api/backup`. Only one runs at a time. 409 if the folder exists, is in ' +
      'DATA_DIR or not in an existing folder, if its disk has too little room, if another backup runs, or if a server keeps ' +
      'the log (EVENTSTORE_URL), which has a backup of its own.',
    body,
    success: { status: 202, description: 'The backup runs', schema: 'backup-record.json' },
    problems: [409],
    async handle(ctx, { actor }) {
      const { to } = await body.read(ctx);
      const record = await http.withinDeadline(http.backups.start(to));
      http.log.info({ to, actor }, 'backup requested');
      return { status: 202, body: record };
    },
  };
}

function lastRoute({ backups }: HttpContext): Route {
  return {
    ...BACKUP,
    method: 'GET',
    name: 'getBackup',
    summary: 'Returns the backup that runs, or the last one since the start of this instance',
    hasUnknown: true,
    success: { status: 200, description: 'The backup', schema: 'backup-record.json' },
    async handle() {
      const record = backups.last();
      if (record === null) throw new RequestRefused('No backup since the start of this instance', { status: 404 });
      return { status: 200, body: record };
    },
  };
}
