/** A server for Gemini's batchEmbedContents and OpenAI's embeddings. A script sets its answers and faults. */
import { DIMENSIONS } from '../../src/embeddings/port.js';
import { fakeServer, sends, type FakeServer, type Reply, type Script } from './fake-server.js';

/** The fields of a request body that tests read. */
export interface EmbeddingRequest {
  /** Of Gemini's batches. */
  readonly requests?: readonly {
    readonly model: string;
    readonly content: { readonly parts: readonly { readonly text: string }[] };
    readonly taskType: string;
    readonly outputDimensionality: number;
  }[];
  readonly model: string;
  /** Of Gemini's single text. */
  readonly content?: { readonly parts: readonly { readonly text: string }[] };
  readonly taskType?: string;
  /** Only in requests to OpenAI. */
  readonly input?: readonly string[];
  readonly dimensions: number;
}

export function fakeEmbeddings(
  script: Script<EmbeddingRequest> | readonly Reply[],
): Promise<FakeServer<EmbeddingRequest>> {
  return fakeServer(script);
}

/** A vector that is computed from a text; its length is not normalized. */
export function numbersOf(text: string): readonly number[] {
  return Array.from({ length: DIMENSIONS }, (_, at) => ((text.length * 31 + at * 7) % 13) - 5);
}

/** Answers each text of a request. */
export const embeds: Script<EmbeddingRequest> = ({ body }) => {
  if (body.input !== undefined) return sends({ object: 'list', data: openAiData(body.input).reverse() });
  return vectorsFor(body, numbersOf);
};

/** The answer of Gemini to a batch or a single text. */
export function vectorsFor(body: EmbeddingRequest, vectorOf: (text: string) => readonly number[]): Reply {
  const vectors = textsIn(body).map((text) => ({ values: [...vectorOf(text)] }));
  return sends(body.requests === undefined ? { embedding: vectors[0] } : { embeddings: vectors });
}

/** The texts in a request of Gemini. */
export function textsIn({ requests, content }: EmbeddingRequest): readonly string[] {
  const contents = requests?.map((each) => each.content) ?? (content === undefined ? [] : [content]);
  return contents.map(({ parts }) => parts[0]?.text ?? '');
}

function openAiData(texts: readonly string[]) {
  return texts.map((text, index) => ({ object: 'embedding', index, embedding: numbersOf(text) }));
}
