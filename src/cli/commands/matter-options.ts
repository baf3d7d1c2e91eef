/** The options that name what a run works on and gives: its material, its documents and the schema of its output. */
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { parseJson } from '../../api/json-body.js';
import { MAX_MATERIAL_BYTES } from '../../graph/limits.js';
import type { Matter } from '../../http/matter.js';
import { isRecord } from '../../system/untrusted.js';
import { ArgumentInvalid, UsageFault } from './exit-codes.js';
import { contentOf, naming } from './run-request.js';

export const MATTER_OPTIONS = {
  material: { type: 'string', multiple: true },
  documents: { type: 'string', multiple: true },
  'output-schema': { type: 'string' },
} as const;

export interface MatterWords {
  readonly material?: readonly string[] | undefined;
  readonly documents?: readonly string[] | undefined;
  readonly 'output-schema'?: string | undefined;
}

/** What the options name; what is absent is not set. @throws {UsageFault | ArgumentInvalid} */
export async function matterIn(words: MatterWords, stdin: Readable): Promise<Matter> {
  const { material: files, documents, 'output-schema': schemaFile } = words;
  return {
    ...(files !== undefined && { material: await materialIn(files, stdin) }),
    ...(documents !== undefined && { documents: documents.flatMap(idsIn) }),
    ...(schemaFile !== undefined && { output_schema: schemaIn(schemaFile) }),
  };
}

/** Whether the material comes from standard input, which then has no answers for a pause. */
export function readsInput({ material = [] }: MatterWords): boolean {
  return material.includes('-');
}

async function materialIn(files: readonly string[], stdin: Readable): Promise<string> {
  if (files.filter((file) => file === '-').length > 1) throw new UsageFault('--material takes - only once');
  const texts: string[] = [];
  for (const file of files) {
    const subject = file === '-' ? 'standard input as material' : `material ${file}`;
    const bytes = file === '-' ? await bytesOf(stdin) : contentOf(file, subject, Infinity);
    if (bytes.length > MAX_MATERIAL_BYTES) {
      throw new ArgumentInvalid({ subject, reason: `Material should have at most ${MAX_MATERIAL_BYTES} bytes` });
    }
    const text = textOf(bytes, subject);
    texts.push(files.length === 1 ? text : `## ${file === '-' ? 'standard input' : basename(file)}\n\n${text}`);
  }
  return texts.join('\n\n');
}

/** The bytes of an input, or a few more than a material may have. */
async function bytesOf(input: AsyncIterable<Uint8Array | string>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    if (length > MAX_MATERIAL_BYTES) break;
  }
  return Buffer.concat(chunks);
}

function textOf(bytes: Uint8Array, subject: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ArgumentInvalid({ subject, reason: 'it is not UTF-8 text' });
  }
}

function idsIn(words: string): readonly string[] {
  return words
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
}

function schemaIn(file: string): Readonly<Record<string, unknown>> {
  const subject = `output schema ${file}`;
  const schema = naming(subject, () => parseJson(contentOf(file, subject)));
  if (!isRecord(schema)) throw new ArgumentInvalid({ subject, reason: 'it is no JSON object' });
  return schema;
}
