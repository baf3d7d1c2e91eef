/** `council fork`: a new run at a service, or what it would do. */
import { CouncilError } from '../../errors.js';
import { inOneLine, printableJson } from '../terminal/printer.js';
import { ServiceRefused, ServiceUnreachable } from '../client/rest.js';
import { EXIT } from './exit-codes.js';
import type { ServiceRecords } from '../records/service-records.js';
import type { AuditDeps } from './audit-usage.js';
import type { AuditCommand } from './audit-usage.js';

/** The answer to a fork is lost: it is unknown whether it has started. */
export class ForkUnknown extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.fork-unknown';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: Error }) {
    super(`Cannot tell whether the fork of run "${runId}" has started: ${cause.message}`, { runId }, { cause });
  }
}

type ForkCommand = Extract<AuditCommand, { readonly name: 'fork' }>;

/** The new run's id alone goes to standard output. @throws {ForkUnknown} */
export async function forkRun(
  command: ForkCommand,
  { service, print, notify, isTerminal }: AuditDeps,
): Promise<number> {
  const { run, request, url, isJson, isDry } = command;
  const json = (value: object): string => (isTerminal ? printableJson(JSON.stringify(value)) : JSON.stringify(value));
  if (isDry) {
    const plan = await service(url).foresee(run, request);
    const next = plan.next_nodes.length === 0 ? 'It ends at once' : `It starts with ${plan.next_nodes.join(', ')}`;
    const text = `${inOneLine(next)}. Results taken over: ${plan.reused_results}. New calls at least: ${plan.new_calls_at_least}.`;
    await print(`${isJson ? json(plan) : text}\n`);
    return EXIT.done;
  }
  const started = await startFork(service(url), command);
  notify(`Forked from run ${run} at event ${request.at}; follow it with: council tail ${started.run_id} --url ${url}`);
  await print(`${isJson ? json(started) : inOneLine(started.run_id)}\n`);
  return EXIT.done;
}

async function startFork(service: ServiceRecords, { run, request }: ForkCommand) {
  try {
    return await service.fork(run, request);
  } catch (error) {
    throw isUnknown(error) ? new ForkUnknown({ runId: run, cause: error }) : error;
  }
}

/** Whether the service may have acted: its answer was lost, or says so (api/problems.ts, `log.outcome-unknown`). */
function isUnknown(error: unknown): error is ServiceRefused | ServiceUnreachable {
  if (error instanceof ServiceUnreachable) return error.data.isSent;
  return error instanceof ServiceRefused && /may still take effect/.test(error.message);
}
