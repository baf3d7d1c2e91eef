/**
 * A service that dies while it erases a run: `node erase-child.js DATA_DIR STEP [EVENTSTORE_URL]`. Prints the id of the run, and
 * kills itself at the step.
 */
import { argv, stdout } from 'node:process';
import { changedLog } from './changed-log.js';
import { restClient } from './rest-client.js';
import { startService } from './running-service.js';

const [, , dataDir = '', step = '', eventStoreUrl = ''] = argv;
const dieAt = (reached: string): void => {
  if (reached === step) process.kill(process.pid, 'SIGKILL');
};
const isErasure = (events: readonly { readonly data: string }[]): boolean =>
  events.some(({ data }) => data.includes('"kind":"erasure"'));

const service = await startService({
  dataDir,
  eventStore: eventStoreUrl === '' ? null : { url: eventStoreUrl, prefix: '' },
  decorate: (log) =>
    changedLog(log, {
      async append(stream, events, expected) {
        if (isErasure(events)) dieAt('leaf unsent');
        const appended = await log.append(stream, events, expected);
        if (isErasure(events)) dieAt('leaf durable');
        return appended;
      },
      async remove(streams) {
        dieAt('removal unsent');
        await log.remove(streams);
        dieAt('removed');
      },
    }),
});
const client = restClient(service.url);
const runId = await client.start('About zyxcanaryword');
await client.until(runId, ({ status }) => status === 'completed');
stdout.write(`${runId}\n`);
await client.send('DELETE', `/api/runs/${runId}`);
