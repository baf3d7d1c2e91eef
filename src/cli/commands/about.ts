/** `council about`: shows the version, the log and the default model of a running service. */
import type { About } from '../../generated/schemas.js';
import { inOneLine } from '../terminal/printer.js';
import { AT_SERVICE, SERVICE_OPTIONS, serviceRead } from './service-read.js';

const USAGE = `Usage: council about --url URL [--json]

Shows the version of a service, its log and its default model.

${AT_SERVICE}`;

export const about = serviceRead({
  usage: USAGE,
  options: SERVICE_OPTIONS,
  read: (council, { signal }) => council.about({ signal }),
  textOf,
});

function textOf({ service, version, node, started_at: startedAt, log, offline, ...model }: About): string {
  const size = log.bytes === null ? '' : `, ${(log.bytes / 1e6).toFixed(1)} MB`;
  const note = offline ? ' (the offline model: no language model is asked)' : '';
  return [
    `${service} ${version} on Node ${node}, started ${startedAt}`,
    `Log: ${log.kind}${size}`,
    `Default model: ${inOneLine(`${model.default_provider}/${model.default_model}`)}${note}`,
  ]
    .map((line) => `${line}\n`)
    .join('');
}
