/** Hides pieces of a key: servers quote a key that they refuse masked, or a part of it. */

/**
 * The text without pieces of the key of 8 characters and more, and without words that show its begin or end beside a mask,
 * or alone if the text speaks of a key ("the key that ends with z7Kd").
 */
export function withoutPieces(text: string, key: string): string {
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
