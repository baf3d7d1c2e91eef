/** What a JSON Schema gives, as an example. */
import { sampleOf } from '../../models/offline/sample.js';
import type { JsonSchema } from './matter.js';

/** A value by a schema as indented JSON: the one that the offline model answers with. */
export function sampleText(schema: JsonSchema): string {
  return JSON.stringify(sampleOf(schema, 'A text'), null, 2);
}
