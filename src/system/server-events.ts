/** Parses server-sent events (HTML standard, "Interpreting an event stream"): the parts that models and this service use. */
import { BodyTooLarge } from './untrusted.js';

export interface ServerEventsOptions {
  /** Whether the last event counts without its empty line, which several models omit. If not, it is dropped. */
  readonly isLastComplete: boolean;
  /** Longest event, in UTF-16 units. */
  readonly maxChars: number;
}

/** The data of each event, lines joined; without comments, names and ids. @throws {BodyTooLarge} */
export async function* serverEvents(
  chunks: AsyncIterable<Uint8Array>,
  options: ServerEventsOptions,
): AsyncGenerator<string> {
  const { isLastComplete, maxChars } = options;
  let data: string[] = [];
  let chars = 0;
  for await (const { line, isEnded } of linesOf(chunks, maxChars)) {
    chars += line.length;
    if (chars > maxChars) throw new BodyTooLarge(`An event has more than ${maxChars} characters`);
    if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
    const isComplete = isEnded ? line === '' : isLastComplete;
    if (!isComplete) continue;
    if (data.length > 0) yield data.join('\n');
    [data, chars] = [[], 0];
  }
}

/** Lines ended by LF or CRLF, and what follows the last one. */
async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxChars: number,
): AsyncGenerator<{ readonly line: string; readonly isEnded: boolean }> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  let chars = 0;
  for await (const chunk of chunks) {
    const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    rest.push(first);
    chars += first.length;
    for (const next of more) {
      yield { line: withoutReturn(rest.join('')), isEnded: true };
      [rest, chars] = [[next], next.length];
    }
    if (chars > maxChars) throw new BodyTooLarge(`A line has more than ${maxChars} characters`);
  }
  yield { line: withoutReturn(rest.join('') + decoder.decode()), isEnded: false };
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
