import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import type { Chunk } from '../../src/documents/chunk.js';
import type { DocumentEvent, DocumentFact } from '../../src/documents/events.js';
import type { DocumentSource, DocumentState } from '../../src/documents/state.js';
import { evolveDocument, nextStep } from '../../src/documents/state.js';
import type { ChainHead } from '../../src/eventsourcing/hash-chain.js';
import { GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import { checkAppend } from '../../src/eventlog/port.js';

const { uuid, sha256 } = nodeSystem();
const VECTOR = 'A'.repeat(4096);

/** A file with the given number of chunks of the given length. */
function fileOf(passages: number, units = 1_200, character = 'x'): DocumentSource {
  const chunks = Array.from({ length: passages }, (_, index): Chunk => {
    return { page: index + 1, from: 0, to: units, text: character.repeat(units) };
  });
  return { filename: 'x.pdf', bytes: 1, pages: passages, actor: null, chunks };
}

/** Records facts one append after the other; each must fit the size limit of the log. */
function recorded(facts: readonly (readonly DocumentFact[])[]): readonly DocumentEvent[] {
  let head: ChainHead = { seq: -1, hash: GENESIS_HASH };
  return facts.flatMap((some) => {
    const instanceId = uuid();
    const at = '2026-01-01T00:00:00.000Z';
    const sealed = sealEvents(head, some, { at, nextId: uuid, sha256, instanceId, correlationId: '', causationId: '' });
    checkAppend('document-x', sealed.events, head.seq < 0 ? 'none' : head.seq);
    head = sealed.exported.at(-1) ?? head;
    return sealed.exported;
  });
}

function folded(facts: readonly (readonly DocumentFact[])[]): DocumentState | null {
  return recorded(facts).reduce<DocumentState | null>(evolveDocument, null);
}

/** Continues from the recorded appends until the document is complete. */
function completed(
  before: readonly (readonly DocumentFact[])[],
  source: DocumentSource,
  model: string | null,
): readonly (readonly DocumentFact[])[] {
  const appends = [...before];
  for (;;) {
    const step = nextStep(folded(appends), source, model);
    if (step.kind === 'done') return appends;
    if (step.kind === 'append') appends.push(step.facts);
    else {
      const vectors = step.texts.map(() => VECTOR);
      appends.push([
        { type: 'ChunksEmbedded', data: { model: model ?? '', dimensions: 768, from: step.from, vectors } },
      ]);
    }
  }
}

const typesOf = (appends: readonly (readonly DocumentFact[])[]): readonly string[] =>
  appends.flat().map(({ type }) => type);

describe('The record of a document', () => {
  const file = fileOf(130);

  it('contains the upload, the chunks, their vectors and the completion', () => {
    const appends = completed([], file, 'm');
    expect(typesOf(appends)).to.deep.equal([
      ...['DocumentReceived', 'ChunksAdded', 'ChunksAdded', 'ChunksAdded'],
      ...['ChunksEmbedded', 'ChunksEmbedded', 'ChunksEmbedded', 'DocumentIngested'],
    ]);
    expect(folded(appends)).to.deep.include({ status: 'ingested', chunks: file.chunks, since: 0, pages: 130 });
    expect(folded(appends)?.embedded.get('m')).to.equal(130);
  });

  it('continues after every append, also of another instance', () => {
    const whole = completed([], file, 'm');
    for (let kept = 0; kept <= whole.length; kept += 1) {
      expect(completed(whole.slice(0, kept), file, 'm')).to.deep.equal(whole);
    }
  });

  it('contains no vectors if none are recorded, and no chunks if the document has no text', () => {
    expect(typesOf(completed([], fileOf(1), null))).to.deep.equal([
      'DocumentReceived',
      'ChunksAdded',
      'DocumentIngested',
    ]);
    expect(typesOf(completed([], fileOf(0), 'm'))).to.deep.equal(['DocumentReceived', 'DocumentIngested']);
  });

  it('fits the size limit of the log for all characters', () => {
    for (const character of ['\u0001', '木', '"', '\ud83c\udf33']) {
      const wide = fileOf(200, character.length === 2 ? 750 : 1_500, character);
      expect(folded(completed([], wide, null))?.chunks).to.deep.equal(wide.chunks);
    }
  });

  it('starts again if another extraction version reads an incomplete document', () => {
    const other = fileOf(60, 1_000, 'y');
    const appends = completed(completed([], file, 'm').slice(0, 3), other, 'm');
    expect(folded(appends)).to.deep.include({ status: 'ingested', chunks: other.chunks, since: 4 });
    expect(folded(appends)?.embedded.get('m')).to.equal(60);
  });

  it('keeps a complete document if another extraction version reads it', () => {
    const whole = completed([], file, 'm');
    expect(completed(whole, fileOf(60, 1_000, 'y'), 'm')).to.deep.equal(whole);
  });

  it('starts again after a deletion', () => {
    const whole = completed([], file, 'm');
    const appends = completed([...whole, [{ type: 'DocumentDeleted', data: {} }]], file, 'm');
    expect(appends).to.deep.equal([
      ...whole,
      [{ type: 'DocumentDeleted', data: {} }],
      ...whole.map((facts) =>
        facts.map((fact) =>
          fact.type === 'DocumentIngested' ? { ...fact, data: { ...fact.data, since: whole.flat().length + 1 } } : fact,
        ),
      ),
    ]);
  });

  it('adds vectors of another model, and keeps the time of the first completion', () => {
    const whole = completed([], file, 'm');
    const appends = completed(whole, file, 'other');
    expect(typesOf(appends.slice(whole.length))).to.deep.equal([
      ...['ChunksEmbedded', 'ChunksEmbedded', 'ChunksEmbedded', 'DocumentIngested'],
    ]);
    expect(appends.at(-1)?.[0]?.data).to.include({ ingestedAt: '2026-01-01T00:00:00.000Z' });
    expect(completed(appends, file, 'm')).to.deep.equal(appends);
    expect(completed(appends, file, null)).to.deep.equal(appends);
    for (let kept = whole.length; kept < appends.length; kept += 1) {
      expect(completed(appends.slice(0, kept), file, 'other')).to.deep.equal(appends);
    }
  });
});
