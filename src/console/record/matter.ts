/** What a run works on and gives, as a user enters it: material, and the JSON Schema of an output. */
import { MAX_MATERIAL_BYTES } from '../../graph/limits.js';

/** Most documents that a run may be told to search. */
export const MAX_DOCUMENTS = 100;

/** A file of the material. */
export interface MaterialFile {
  readonly name: string;
  readonly text: string;
}

/** The material of pasted text and files: one file as it is, else each below its name; empty without any. */
export function materialOf(pasted: string, files: readonly MaterialFile[]): string {
  const [first, ...more] = files;
  if (first !== undefined && more.length === 0 && pasted.trim() === '') return first.text;
  const parts = files.map(({ name, text }) => `## ${name}\n\n${text}`);
  return (pasted.trim() === '' ? parts : [pasted, ...parts]).join('\n\n');
}

/** Why a material of so many bytes of UTF-8 cannot be used, or null. */
export function materialFault(bytes: number): string | null {
  if (bytes <= MAX_MATERIAL_BYTES) return null;
  return `The material has ${grouped(bytes)} bytes. At most ${grouped(MAX_MATERIAL_BYTES)} are possible: remove a file or a part of the text.`;
}

/** A size beside the largest possible one, such as `12.3 kB of 600 kB`, or that alone. */
export function sizeOfMost(bytes: number): string {
  const most = sizeText(MAX_MATERIAL_BYTES);
  return bytes === 0 ? `At most ${most}` : `${sizeText(bytes)} of ${most}`;
}

/** A size in bytes for people: `812 bytes`, `12.3 kB`, `480 kB`, `1.2 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`;
  const [size, unit] = bytes < 999_500 ? [1_000, 'kB'] : [1_000_000, 'MB'];
  const amount = bytes / size;
  return `${amount < 99.95 ? amount.toFixed(1).replace(/\.0$/, '') : Math.round(amount)} ${unit}`;
}

/** The text of a file, or why it cannot be material. @throws the file cannot be read */
export async function readMaterial(file: File): Promise<MaterialFile | { readonly fault: string }> {
  const { name, size } = file;
  if (/\.(pdf|docx?|xlsx?|pptx?|odt|zip|png|jpe?g)$/i.test(name)) {
    const advice = /\.pdf$/i.test(name) ? ' Upload PDFs on the page Documents.' : ' Save it as text first.';
    return { fault: `${name} is not a text file.${advice}` };
  }
  if (size > MAX_MATERIAL_BYTES) {
    return { fault: `${name} has ${grouped(size)} bytes. At most ${grouped(MAX_MATERIAL_BYTES)} are possible.` };
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    // A text in UTF-16 reads as UTF-8 with a zero after each letter.
    if (!text.includes('\0')) return { name, text };
  } catch (error) {
    if (!(error instanceof TypeError)) return { fault: `${name} cannot be read.` };
  }
  return { fault: `${name} is not text in UTF-8. Save it in this encoding and add it again.` };
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema in a typed text: null if it is empty, or what is wrong with it. */
export function schemaIn(text: string): { readonly schema: JsonSchema | null } | { readonly fault: string } {
  if (text.trim() === '') return { schema: null };
  try {
    const value: unknown = JSON.parse(text);
    if (isSchema(value)) return { schema: value };
  } catch (error) {
    return { fault: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  return { fault: 'A schema is a JSON object, such as {"type": "object", "properties": {…}}.' };
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
