/**
 * A process that ingests a file and kills itself at a chosen point, as a power cut would. Takes an IngestPlan as its
 * argument; prints the outcome as a line of JSON.
 */
import { readFileSync, writeSync } from 'node:fs';
import type { Config } from '../../src/config.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import type { AppendBoundary } from './mortal-log.js';
import { deathAt, mortalLog } from './mortal-log.js';
import { openTestEngine } from './open-engine.js';
import { scriptedModel } from './scripted-model.js';

export interface IngestPlan {
  readonly path: string;
  readonly file: string;
  /** Id of the document: hash of the file's bytes. */
  readonly id: string;
  readonly filename: string;
  /** The file's text as JSON, so that no process has to extract it again. */
  readonly textFile: string;
  readonly embeddings: Config['embeddings'];
  /** Where to die, or null to ingest the file. `ordinal` counts the appends here, from 0. */
  readonly crash: { readonly boundary: AppendBoundary; readonly ordinal: number } | null;
}

const plan = JSON.parse(process.argv[2] ?? '{}') as IngestPlan;

const { path, embeddings, file, id, filename, textFile } = plan;
const bytes = readFileSync(file);
const text = JSON.parse(readFileSync(textFile, 'utf8')) as Awaited<ReturnType<PdfExtractor['extract']>>;
const extractor: PdfExtractor = { extract: () => Promise.resolve(text), stop: () => Promise.resolve() };
const engine = await openTestEngine({
  ...{ path, embeddings, extractor },
  model: scriptedModel(),
  decorate: (log) => mortalLog(log, () => true, deathAt(plan.crash)),
});
await engine.recovery.unfinished();
const { chunks, isNew } = await engine.documents.ingest({
  id,
  filename,
  bytes: bytes.length,
  read: async () => new Uint8Array(bytes),
});
writeSync(1, `${JSON.stringify({ chunks, isNew })}\n`);
await engine.stop();
