/** `council webhooks`: registers, lists and removes the webhooks of a running service, and shows their deliveries. */
import { readCouncilKey } from '../../config.js';
import type { CouncilClient } from '../../client/client.js';
import type { WebhookDelivery, WebhookRequest } from '../../generated/schemas.js';
import { nodeSystem } from '../../system/system.js';
import { printable } from '../terminal/printer.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess, Output, Words } from './command.js';
import { HELP, execute, serviceUrl } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council webhooks add ADDRESS [--types TYPE,TYPE…] [--blueprint ID] --url URL
       council webhooks list --url URL
       council webhooks remove ID --url URL
       council webhooks rotate ID --url URL
       council webhooks deliveries ID --url URL
       council webhooks retry ID DELIVERY --url URL

add and rotate print the secret of the webhook, which cannot be shown again. retry attempts a delivery at once.

  --types      types of the events; default: RunPaused,RunCompleted,RunFailed
  --blueprint  only events of the runs of this blueprint
  --url URL    the running service, for example http://127.0.0.1:8000, with an admin key in COUNCIL_KEY
  --help       show this text

Exit code: 0 done, 1 failed, 2 wrong usage or a refusal, 3 no service there, 130 after Ctrl-C.`;

const OPTIONS = {
  ...HELP,
  url: { type: 'string' },
  types: { type: 'string' },
  blueprint: { type: 'string' },
} as const;

interface Call extends Output {
  readonly words: readonly string[];
  readonly values: Words<typeof OPTIONS>['values'];
  readonly webhooks: CouncilClient['webhooks'];
  readonly signal: AbortSignal;
}

/** What each command does, and the names of its words. */
const ACTIONS = new Map<string, { readonly takes: readonly string[]; readonly run: (call: Call) => Promise<void> }>([
  ['add', { takes: ['address'], run: add }],
  ['list', { takes: [], run: list }],
  ['remove', { takes: ['id'], run: remove }],
  ['rotate', { takes: ['id'], run: rotate }],
  ['deliveries', { takes: ['id'], run: deliveries }],
  ['retry', { takes: ['id', 'delivery'], run: retry }],
]);

export function webhooks(given: readonly string[], here: CommandProcess): Promise<number> {
  return execute(given, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, output) => {
    const [name = '', ...words] = positionals;
    const action = ACTIONS.get(name);
    if (action === undefined) throw new UsageFault(`There is no command "webhooks ${name}"`);
    const missing = action.takes[words.length];
    if (missing !== undefined) throw new UsageFault(`The ${missing} is missing`);
    if (words.length > action.takes.length) throw new UsageFault('Too many words');
    if (values.url === undefined) throw new UsageFault('--url is missing: the running service');
    const url = serviceUrl(values.url);
    const { serviceClient } = await import('../service-client.js');
    const client = serviceClient(url, { key: readCouncilKey(here.env), system: nodeSystem() });
    await action.run({ ...output, words, values, webhooks: client.webhooks, signal: here.signal });
    return EXIT.done;
  });
}

async function add({ words: [url = ''], values, webhooks: known, signal, print, notify }: Call): Promise<void> {
  // The service checks the names.
  const types = values.types?.split(',').map((each) => each.trim()) as WebhookRequest['types'];
  const { id, secret } = await known.register({ url, types, blueprintId: values.blueprint, signal });
  await print(`${secret}\n`);
  notify(`Webhook ${id} is registered. Its secret cannot be shown again.`);
}

async function list({ webhooks: known, signal, print, notify }: Call): Promise<void> {
  const all = await known.list({ signal });
  if (all.length === 0) return notify('There is no webhook');
  for (const { id, url, types, blueprint_id: blueprint, disabled } of all) {
    const marks = [...(blueprint === null ? [] : [`of ${blueprint}`]), ...(disabled ? ['disabled'] : [])];
    await print(`${printable([id, url, types.join(','), ...marks].join('  '))}\n`);
  }
}

async function remove({ words: [id = ''], webhooks: known, signal, notify }: Call): Promise<void> {
  await known.remove(id, { signal });
  notify(`Webhook ${id} is deleted`);
}

async function rotate({ words: [id = ''], webhooks: known, signal, print, notify }: Call): Promise<void> {
  await print(`${(await known.rotate(id, { signal })).secret}\n`);
  notify('For 24 hours the service signs deliveries with this secret and with the previous one.');
}

async function deliveries({ words: [id = ''], webhooks: known, signal, print, notify }: Call): Promise<void> {
  const all = await known.deliveries(id, { signal });
  if (all.length === 0) return notify('There is no delivery');
  for (const each of all) await print(`${printable(deliveryLine(each))}\n`);
}

async function retry({ words: [id = '', delivery = ''], webhooks: known, signal, notify }: Call): Promise<void> {
  await known.retry(id, delivery, { signal });
  notify(`Delivery ${delivery} is attempted again`);
}

function deliveryLine({ id, type, run_id: runId, seq, status, attempts, ...last }: WebhookDelivery): string {
  const next = last.next_attempt_at === null ? [] : [`next ${last.next_attempt_at}`];
  const error = last.error === null ? [] : [last.error];
  return [id, `${type} of ${runId} at ${seq}`, `${status}, ${countOf(attempts, 'attempt')}`, ...next, ...error].join(
    '  ',
  );
}
