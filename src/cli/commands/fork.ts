/** `council fork`: starts a run that continues another from one of its events, or shows what it would do. */
import type { ForkRequest } from '../../generated/schemas.js';
import type { Matter } from '../../http/matter.js';
import type { ServiceRecords } from '../records/service-records.js';
import { isOutcomeUnknown } from '../service-faults.js';
import { inOneLine } from '../terminal/printer.js';
import type { CommandProcess, Words } from './command.js';
import { BUDGET_OPTIONS, budgetIn } from './budget-options.js';
import { MATTER_OPTIONS, matterIn } from './matter-options.js';
import { EXIT, OutcomeUnknown, UsageFault } from './exit-codes.js';
import { JSON_OPTION, RECORD_OPTIONS, jsonText, onRecord, runsIn, seqIn } from './record-command.js';

const USAGE = `Usage: council fork RUN --at N --url URL [options]

Starts a run at the service that continues RUN from event N, and prints its id.

  --at N                   number of the event, from 0
  --topic TEXT             another topic
  --set KEY=JSON           another value in the state, for example critic_score=8; may be repeated
  --model NODE=MODEL       another model for a node; may be repeated
  --max-node-executions N  another limit of node executions
  --budget-usd N, --budget-tokens N, --on-exceeded X
                           another budget, as for council run; the fork has spent nothing
  --material FILE, --documents ID,ID, --output-schema FILE
                           another material, documents or schema, as for council run
  --dry-run                show what the fork would do, and start nothing
  --json                   print the answer of the service as one JSON object
  --url URL                the running service, for example http://127.0.0.1:8000
  --help                   show this text

Exit code: 0 done, 1 failed or unknown whether the fork has started, 2 wrong usage or refused by the service, 3 no
service at URL, 4 no such run, 130 after Ctrl-C.`;

const OPTIONS = {
  ...RECORD_OPTIONS,
  ...JSON_OPTION,
  at: { type: 'string' },
  topic: { type: 'string' },
  set: { type: 'string', multiple: true },
  model: { type: 'string', multiple: true },
  'max-node-executions': { type: 'string' },
  ...MATTER_OPTIONS,
  ...BUDGET_OPTIONS,
  'dry-run': { type: 'boolean' },
} as const;

/** The id of the new run is all that goes to standard output. @throws {OutcomeUnknown} */
export function fork(words: readonly string[], here: CommandProcess): Promise<number> {
  return onRecord(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, deps) => {
    const { url, service, print, notify } = deps;
    const [run] = runsIn(positionals);
    if (url === null) throw new UsageFault('A fork needs --url: it is a new run, which only a service can run');
    const request = requestIn(values, await matterIn(values, here.stdin));
    const records = await service(url);
    if (values['dry-run'] === true) {
      const plan = await records.planFork(run, request);
      const next = plan.next_nodes.length === 0 ? 'It ends at once' : `It starts with ${plan.next_nodes.join(', ')}`;
      const counts = `Results reused: ${plan.reused_results}. New calls: at least ${plan.new_calls_at_least}.`;
      const text = `${inOneLine(next)}. ${counts}\n`;
      await print(values.json === true ? jsonText(JSON.stringify(plan), deps) : text);
      return EXIT.done;
    }
    const started = await startFork(records, run, request);
    notify(
      `Forked from run ${run} at event ${request.at}; follow it with: council tail ${started.run_id} --url ${url}`,
    );
    await print(values.json === true ? jsonText(JSON.stringify(started), deps) : `${inOneLine(started.run_id)}\n`);
    return EXIT.done;
  });
}

async function startFork(service: ServiceRecords, run: string, request: ForkRequest) {
  try {
    return await service.fork(run, request);
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    throw new OutcomeUnknown(`Cannot tell whether the fork of run "${run}" has started`, error);
  }
}

/** The request for the fork that the options describe. @throws {UsageFault} */
export function requestIn(values: Words<typeof OPTIONS>['values'], matter: Matter = {}): ForkRequest {
  const at = seqIn('at', values.at);
  if (at === null) throw new UsageFault('--at is missing: the event from which the fork continues');
  const { topic, set = [], model = [] } = values;
  const maxExecutions = countIn('max-node-executions', values['max-node-executions']);
  const changes = {
    ...(topic !== undefined && { input_topic: topic }),
    ...matter,
    ...(set.length > 0 && { modified_state: Object.fromEntries(set.map(settingIn)) }),
    ...(model.length > 0 && { nodes: model.map(modelIn) }),
    ...(maxExecutions !== null && { max_node_executions: maxExecutions }),
  };
  const budget = budgetIn(values);
  return { at, ...(budget !== null && { budget }), ...(Object.keys(changes).length > 0 && { changes }) };
}

function countIn(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UsageFault(`--${name} takes a whole number from 1; not "${text}"`);
}

function settingIn(text: string): readonly [string, unknown] {
  const [, key, json] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || json === undefined) throw new UsageFault(`--set takes KEY=JSON, not "${text}"`);
  try {
    return [key, JSON.parse(json)];
  } catch {
    throw new UsageFault(`--set ${key} takes JSON, such as 8, null or '"a text"'; not ${json}`);
  }
}

/** Splits at the last equals sign: the id of a node may contain some, the name of a model none. */
function modelIn(text: string): { readonly id: string; readonly model: string } {
  const [, id, model] = /^(.+)=([^=]+)$/s.exec(text) ?? [];
  if (id === undefined || model === undefined) throw new UsageFault(`--model takes NODE=MODEL, not "${text}"`);
  return { id, model };
}
