/** The format of the output that a request asks for, as the JSON Schema of a run's output. */
import type { RunRequest } from '../generated/schemas.js';
import { isOutput } from '../graph/output-node.js';
import type { HttpContext } from '../http/route.js';
import type { RunState } from '../run/state.js';
import { finalDraftOf, finalOutputOf } from '../run/state.js';
import { quoted, refusal } from './errors.js';

type Schema = RunRequest['output_schema'];

/** `text.format` of a response, or `response_format` of a chat, whose schema is one level deeper. */
interface Format {
  readonly type?: string | undefined;
  readonly json_schema?: { readonly schema?: Schema } | undefined;
  readonly schema?: Schema;
}

/** The schema of the format, absent for text. @throws {RequestRefused} 400 for another format, or a schema that cannot be used */
export async function schemaOf(
  { type = 'text', json_schema: nested, schema = nested?.schema }: Format = {},
  at: readonly string[],
  { schemaChecker }: Pick<HttpContext, 'schemaChecker'>,
): Promise<Schema> {
  if (type === 'text') return undefined;
  if (type === 'json_object') return { type: 'object' };
  if (type !== 'json_schema') {
    const message = `The format ${quoted(type)} is not supported; text, json_object and json_schema are`;
    throw refusal(message, { code: 'unsupported_parameter', at: [...at, 'type'] });
  }
  if (schema === undefined) {
    throw refusal('A format of type json_schema needs a schema', { code: 'missing_required_parameter', at });
  }
  const fault = await schemaChecker.faultOf(schema);
  if (fault === null) return schema;
  throw refusal(`The schema cannot be used: ${fault}`, { code: 'invalid_json_schema', at });
}

/** Whether a completed run ended at its budget before its exact output: a client must not read its draft as that output. */
export function lacksOutput(run: RunState): boolean {
  const { phase, plan } = run;
  return phase.status === 'completed' && plan.graph.nodes.some(isOutput) && finalOutputOf(run) === undefined;
}

/** The result of a completed run as text: its final output as JSON if it has one, or else its final draft. */
export function resultOf(run: RunState): string {
  const output = finalOutputOf(run);
  return output === undefined ? (finalDraftOf(run) ?? '') : JSON.stringify(output);
}
