/** Hides keys and prompts in what servers say: they quote a key that they refuse, whole, masked or a part of it. */

/** What no message may quote. */
export interface Hidden {
  /** The key of the provider, or null if it has none. No piece of it may be quoted, masked or not. */
  readonly key: string | null;
  /** Prompts. */
  readonly texts: readonly string[];
}

/** A server's message on one line, bounded, with secrets replaced. */
export function redact(said: string, { key, texts }: Hidden): string {
  const whole = [key ?? '', ...texts].filter((each) => each !== '');
  const safe = whole.reduce((text, each) => text.replaceAll(each, '…'), said.slice(0, MAX_SAID_CHARS));
  const line = withoutPieces(safe.slice(0, 4 * MAX_WORDS_CHARS), key ?? '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length > MAX_WORDS_CHARS ? `${line.slice(0, MAX_WORDS_CHARS)}…` : line;
}

/** A server's value that should be a short name, made safe for a message, with secrets replaced. */
export function redactName(name: unknown, hidden: Hidden): string {
  if (typeof name !== 'string') return typeof name;
  const safe = redact(name, hidden).replace(/[^\w-]/g, '?');
  return safe.slice(0, 60);
}

/** Most UTF-16 units that are read of a server's message: more than the longest prompt, which a part of it must not escape. */
const MAX_SAID_CHARS = 1024 * 1024;

/** Most UTF-16 units quoted of a server's message: a sentence or two. */
const MAX_WORDS_CHARS = 300;

/**
 * The text without pieces of the key of 8 characters and more, and without words that show its begin or end beside a mask,
 * or alone if the text speaks of a key ("the key that ends with z7Kd").
 */
function withoutPieces(text: string, key: string): string {
  const unmasked = text.replace(/\S+/g, (word) => (isMaskedKey(word, key) ? '…' : word));
  const isEnd = (word: string): boolean => key.startsWith(word) || key.endsWith(word);
  const words = OF_KEYS.test(text) ? unmasked.replace(/[\w-]{4,}/g, (word) => (isEnd(word) ? '…' : word)) : unmasked;
  const starts = Array.from({ length: Math.max(0, key.length - PIECE_CHARS + 1) }, (_, at) => at);
  const pieces = new Set(starts.map((at) => key.slice(at, at + PIECE_CHARS)));
  let safe = '';
  for (let at = 0, hiddenTo = 0; at < words.length; at += 1) {
    const isPiece = pieces.has(words.slice(at, at + PIECE_CHARS));
    if (at >= hiddenTo) safe += isPiece ? '…' : words.charAt(at);
    if (isPiece) hiddenTo = at + PIECE_CHARS;
  }
  return safe;
}

/** As OpenAI quotes a wrong key, `sk-proj-****z7Kd`, and LiteLLM, `sk-...z7Kd`. */
function isMaskedKey(word: string, key: string): boolean {
  const parts = word.split(MASK);
  const lengths = Array.from({ length: Math.max(0, key.length - 1) }, (_, index) => index + 2);
  const isOfKey = (part: string): boolean =>
    lengths.some((length) => part.endsWith(key.slice(0, length)) || part.startsWith(key.slice(-length)));
  return parts.length > 1 && parts.some(isOfKey);
}

const MASK = /[*•●█…]+|[.#_-]{2,}|x{3,}/i;

const OF_KEYS = /\b(?:key|token|secret|credential|begin|start|end|first|last)/i;

/** The shortest piece of a key that is hidden without a mask beside it. Shorter ones may be words. */
const PIECE_CHARS = 8;
