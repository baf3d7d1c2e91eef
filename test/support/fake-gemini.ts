/** A server for Gemini's generateContent. A script sets its answers and faults. */
import type { Call, FakeServer, Reply, Script } from './fake-server.js';
import { fakeServer, sends, streams } from './fake-server.js';

export { hangs, resets, sends, streams } from './fake-server.js';

export type GeminiCall = Call<GeminiRequest>;
export type GeminiReply = Reply;
export type GeminiScript = Script<GeminiRequest>;
export type FakeGemini = FakeServer<GeminiRequest>;

/** The fields of a content's part that tests read. */
export interface GeminiPart {
  readonly text: string;
  readonly functionCall?: { readonly name: string; readonly args: object };
  readonly functionResponse?: { readonly name: string; readonly response: { readonly content: string } };
  readonly thoughtSignature?: string;
}

/** The fields of a request body that tests read. */
export interface GeminiRequest {
  readonly contents: readonly { readonly role: string; readonly parts: readonly GeminiPart[] }[];
  readonly tools?: readonly { readonly functionDeclarations: readonly { readonly name: string }[] }[];
  readonly systemInstruction?: { readonly parts: readonly { readonly text: string }[] };
  readonly generationConfig: {
    readonly temperature?: number;
    readonly maxOutputTokens?: number;
    readonly responseMimeType?: string;
    readonly responseSchema?: object;
  };
}

export function fakeGemini(script: GeminiScript | readonly GeminiReply[] = councilOf([8])): Promise<FakeGemini> {
  return fakeServer(script);
}

/** Critics give these scores in order, the last one again and again; agents answer `Draft 1`, `Draft 2` and so on. */
export function councilOf(scores: readonly number[]): GeminiScript {
  let scored = 0;
  let drafted = 0;
  return ({ body }) => {
    if (!isCritique(body)) return says(`Draft ${(drafted += 1)}`);
    const score = scores[Math.min(scored, scores.length - 1)];
    scored += 1;
    return says(JSON.stringify({ score, feedback: `Feedback ${scored}` }));
  };
}

/** Whether a critic's answer is asked for. */
export function isCritique({ generationConfig }: GeminiRequest): boolean {
  return generationConfig.responseMimeType === 'application/json';
}

/** One whole answer, of these parts or of one text. */
export function says(answer: string | readonly object[], finishReason: string | null = 'STOP'): GeminiReply {
  const parts = typeof answer === 'string' ? [{ text: answer }] : answer;
  const candidate = { content: { role: 'model', parts }, ...(finishReason !== null && { finishReason }), index: 0 };
  return sends({ candidates: [candidate], usageMetadata: USAGE, modelVersion: 'fake' });
}

/** One answer in pieces of text. */
export function saysInPieces(pieces: readonly string[]): GeminiReply {
  const chunk = (text: string, more: object = {}): object => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, ...more }],
  });
  return streams([
    ...pieces.map((text) => chunk(text)),
    { ...chunk('', { finishReason: 'STOP' }), usageMetadata: USAGE },
  ]);
}

const USAGE = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };

export interface Refusal {
  readonly message?: string;
  readonly details?: readonly object[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error in the form of Google's APIs. */
export function refuses(status: number, { message = 'No.', details, headers = {} }: Refusal = {}): GeminiReply {
  return (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { code: status, message, status: 'REFUSED', ...(details && { details }) } }));
  };
}

/** One whole answer, a byte at a time. */
export function saysSlowly(text: string): GeminiReply {
  return (response) => {
    const bytes = Buffer.from(
      JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] }),
    );
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const sendFrom = (at: number): void => {
      if (at >= bytes.length) response.end();
      else response.write(bytes.subarray(at, at + 1), () => setImmediate(sendFrom, at + 1));
    };
    sendFrom(0);
  };
}
