/** A server that speaks Gemini's generateContent, well or badly, by a script. */
import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';

/** One request as it came over the wire. */
export interface GeminiCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: GeminiRequest;
  /** `performance.now()` at its arrival. */
  readonly atMs: number;
}

/** What of a request body tests look at. */
export interface GeminiRequest {
  readonly contents: readonly { readonly role: string; readonly parts: readonly { readonly text: string }[] }[];
  readonly systemInstruction?: { readonly parts: readonly { readonly text: string }[] };
  readonly generationConfig: {
    readonly temperature?: number;
    readonly maxOutputTokens?: number;
    readonly responseMimeType?: string;
    readonly responseSchema?: object;
  };
}

/** Answers one request, or does not. */
export type GeminiReply = (response: ServerResponse) => void;

/** Chooses the reply to a call; `index` counts all calls from 0. */
export type GeminiScript = (call: GeminiCall, index: number) => GeminiReply;

export interface FakeGemini {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Every call so far, oldest first. */
  readonly calls: readonly GeminiCall[];
  /** How many callers have gone before their answer was complete. */
  abandoned(): number;
  /** Replies by another script from now on: a function, or a list used up in order whose last reply stays. */
  answerBy(script: GeminiScript | readonly GeminiReply[]): void;
  /** Resolves once a condition on this server holds. */
  until(condition: () => boolean): Promise<void>;
  stop(): Promise<void>;
}

export async function fakeGemini(script: GeminiScript | readonly GeminiReply[] = councilOf([8])): Promise<FakeGemini> {
  const calls: GeminiCall[] = [];
  const checks = new Set<() => void>();
  let choose = chooser(script);
  let abandoned = 0;
  const check = (): void => checks.forEach((each) => each());
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    response.on('close', () => {
      if (!response.writableFinished) abandoned += 1;
      check();
    });
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const body = JSON.parse(Buffer.concat(chunks).toString()) as GeminiRequest;
      const call = { method, path, headers, body, atMs: performance.now() };
      calls.push(call);
      choose(call, calls.length - 1)(response);
      check();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    calls,
    abandoned: () => abandoned,
    answerBy: (next) => (choose = chooser(next)),
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition()) return;
          checks.delete(look);
          resolve();
        };
        checks.add(look);
        look();
      }),
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
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
  const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
  const candidate = { content: { role: 'model', parts }, ...(finishReason !== null && { finishReason }), index: 0 };
  return sends({ candidates: [candidate], usageMetadata, modelVersion: 'fake' });
}

/** Any body with status 200: text as it is, other values as JSON. */
export function sends(body: unknown): GeminiReply {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

export interface Refusal {
  readonly message?: string;
  readonly details?: readonly object[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error as Google's APIs put it. */
export function refuses(status: number, { message = 'No.', details, headers = {} }: Refusal = {}): GeminiReply {
  return (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { code: status, message, status: 'REFUSED', ...(details && { details }) } }));
  };
}

/** Takes the request and never answers. */
export const hangs: GeminiReply = () => undefined;

/** Begins an answer and never goes on. */
export const hangsMidBody: GeminiReply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.write('{"candidates": [');
};

/** Resets the connection without an answer. */
export const resets: GeminiReply = (response) => response.socket?.resetAndDestroy();

/** Resets the connection once the beginning of an answer is sent. */
export const resetsMidBody: GeminiReply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.write('{"candidates": [', () => response.socket?.resetAndDestroy());
};

/** Ends the connection in the middle of a body whose length it has told. */
export const endsMidBody: GeminiReply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
  response.write('{"candidates": [', () => response.socket?.destroy());
};

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

function chooser(script: GeminiScript | readonly GeminiReply[]): GeminiScript {
  if (typeof script === 'function') return script;
  let used = 0;
  return () => {
    const reply = script[Math.min(used, script.length - 1)] ?? refuses(500, { message: 'The script is empty' });
    used += 1;
    return reply;
  };
}
