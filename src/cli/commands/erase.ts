/** `council erase`: erases a run that has ended. */
import { RUN_AT_SERVICE, SERVICE_OPTIONS, runRead } from './service-read.js';

const USAGE = `Usage: council erase RUN [--reason TEXT] --url URL [--json]

Erases a run that has ended, with the runs that its councils have started: its texts leave the log, the views and the
search, and every read of it is refused. Its leaf in the ledger, its cost, tokens and outcome in the overview, and its forks
stay. Needs a key with the scope admin. An erasure cannot be undone; backups made before it still hold the run.

  --reason TEXT  why, at most 500 characters. It stays in the ledger for ever: name no person
${RUN_AT_SERVICE}`;

export const erase = runRead({
  usage: USAGE,
  options: { ...SERVICE_OPTIONS, reason: { type: 'string' } },
  async read(run, { values: { reason }, signal }) {
    await run.erase({ signal, ...(reason !== undefined && { reason }) });
    return { run_id: run.id, erased: true };
  },
  textOf: ({ run_id: runId }) => `Run ${runId} is erased.\n`,
});
