/**
 * Folds a document from its events and decides the next step of its ingestion. Pure, so that the next step is the same after
 * a crash and on another instance.
 */
import type { Chunk } from './chunk.js';
import type { DocumentEvent, DocumentFact } from './events.js';
import type { StreamHead } from '../eventsourcing/aggregate.js';
import { headOf } from '../eventsourcing/aggregate.js';
import { VECTORS_PER_EVENT } from '../embeddings/port.js';

export interface DocumentState {
  readonly status: 'receiving' | 'ingested' | 'deleted';
  /** Its last event. */
  readonly head: StreamHead;
  readonly filename: string;
  /** Size of the file. */
  readonly bytes: number;
  readonly pages: number;
  /** Name of the key that uploaded it, or null if the service had no keys. */
  readonly actor: string | null;
  /** Seq of the last DocumentReceived. */
  readonly since: number;
  readonly chunks: readonly Chunk[];
  /** Number of chunks with vectors by model, counted from the first chunk. */
  readonly embedded: ReadonlyMap<string, number>;
  /** Whether vectors were added after the last DocumentIngested, so that another one must follow. */
  readonly hasNewVectors: boolean;
  /** When it was first ingested, or null before. */
  readonly ingestedAt: string | null;
}

/** The recorded contents of a file. */
export type DocumentSource = Pick<DocumentState, 'filename' | 'bytes' | 'pages' | 'chunks' | 'actor'>;

export type NextStep =
  | { readonly kind: 'append'; readonly facts: readonly DocumentFact[] }
  /** Embed these texts; the first is that of chunk `from`. */
  | { readonly kind: 'embed'; readonly from: number; readonly texts: readonly string[] }
  | { readonly kind: 'done' };

/** Largest number of UTF-16 units in the chunks of one event: in JSON at most six bytes each, 384 KiB. */
const UNITS_PER_EVENT = 64_000;

/** The document after an event. */
export function evolveDocument(state: DocumentState | null, event: DocumentEvent): DocumentState {
  const { seq } = event;
  const head = headOf(event);
  const before = state ?? UNBEGUN;
  switch (event.type) {
    case 'DocumentReceived':
      return { ...UNBEGUN, ...event.data, head, since: seq };
    case 'ChunksAdded':
      return { ...before, head, chunks: [...before.chunks, ...event.data.chunks] };
    case 'ChunksEmbedded':
      return { ...before, head, embedded: withVectors(before.embedded, event.data), hasNewVectors: true };
    case 'DocumentIngested':
      return {
        ...before,
        head,
        status: 'ingested',
        hasNewVectors: false,
        ingestedAt: event.data.ingestedAt ?? event.at,
      };
    case 'DocumentDeleted':
      return { ...before, head, status: 'deleted', ingestedAt: null };
    default:
      return event satisfies never;
  }
}

const UNBEGUN: DocumentState = {
  status: 'receiving',
  head: { seq: -1, hash: '', id: '', at: '' },
  filename: '',
  bytes: 0,
  pages: 0,
  actor: null,
  since: 0,
  chunks: [],
  embedded: new Map(),
  hasNewVectors: false,
  ingestedAt: null,
};

function withVectors(
  embedded: DocumentState['embedded'],
  { model, from, vectors }: { readonly model: string; readonly from: number; readonly vectors: readonly string[] },
): DocumentState['embedded'] {
  // Vectors after a gap are ignored. Embedding continues from the first missing one.
  if (from !== (embedded.get(model) ?? 0)) return embedded;
  return new Map([...embedded, [model, from + vectors.length]]);
}

/**
 * The next step to ingest a file. If the recorded chunks differ from those of the file (another version extracted its text),
 * or the document was deleted, the ingestion starts again.
 *
 * @param model the model whose vectors are recorded, or null if vectors are not recorded
 */
export function nextStep(state: DocumentState | null, source: DocumentSource, model: string | null): NextStep {
  if (state === null || state.status === 'deleted') return begun(source);
  const { chunks, status, since, filename, pages, ingestedAt } = state;
  if (status === 'receiving') {
    if (!isBeginningOf(chunks, source.chunks)) return begun(source);
    const missing = packFrom(source.chunks, chunks.length);
    if (missing.length > 0) return appending({ type: 'ChunksAdded', data: { chunks: missing } });
  }
  const from = model === null ? chunks.length : (state.embedded.get(model) ?? 0);
  if (from < chunks.length) {
    const texts = chunks.slice(from, from + VECTORS_PER_EVENT).map(({ text }) => text);
    return { kind: 'embed', from, texts };
  }
  if (status === 'ingested' && !state.hasNewVectors) return { kind: 'done' };
  return appending({ type: 'DocumentIngested', data: { chunks: chunks.length, filename, pages, since, ingestedAt } });
}

function begun({ filename, bytes, pages, chunks, actor }: DocumentSource): NextStep {
  const first = packFrom(chunks, 0);
  return appending(
    { type: 'DocumentReceived', data: { filename, bytes, pages, actor } },
    ...(first.length === 0 ? [] : [{ type: 'ChunksAdded' as const, data: { chunks: [...first] } }]),
  );
}

function appending(...facts: readonly DocumentFact[]): NextStep {
  return { kind: 'append', facts };
}

function isBeginningOf(recorded: readonly Chunk[], chunks: readonly Chunk[]): boolean {
  return recorded.every(({ page, from, to, text }, at) => {
    const other = chunks[at];
    return other?.page === page && other.from === from && other.to === to && other.text === text;
  });
}

/** As many chunks as fit into one event, at least one if there is any. */
function packFrom(chunks: readonly Chunk[], from: number): Chunk[] {
  let units = 0;
  const packed: Chunk[] = [];
  for (const chunk of chunks.slice(from)) {
    units += chunk.text.length;
    if (units > UNITS_PER_EVENT && packed.length > 0) break;
    packed.push(chunk);
  }
  return packed;
}
