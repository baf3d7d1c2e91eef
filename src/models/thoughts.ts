/**
 * Removes a model's thoughts from its answer. Reasoning models write them before the answer, between tags such as `<think>`
 * and `</think>`. Some servers put the opening tag into the prompt, so that the answer lacks it.
 */

/** Tags of thoughts in lower case: of DeepSeek, Qwen, Gemma and others, of Seed, of Kimi, and the channel marks of gpt-oss. */
const TAGS: readonly { readonly open: string; readonly close: string }[] = [
  { open: '<think>', close: '</think>' },
  { open: '<thinking>', close: '</thinking>' },
  { open: '<thought>', close: '</thought>' },
  { open: '<reasoning>', close: '</reasoning>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '◁think▷', close: '◁/think▷' },
  ...['<|channel|>analysis<|message|>', '<|start|>assistant<|channel|>analysis<|message|>'].map((open) => ({
    ...{ open, close: '<|channel|>final<|message|>' },
  })),
];

/** What only begins an answer: the channel marks of gpt-oss without special tokens. A letter follows without a space. */
const BEGINNINGS = [...TAGS, { open: 'analysis', close: 'assistantfinal' }];
const IS_WORD = /^analysis(?![a-z])/;

/** An answer without its thoughts. */
export interface AnswerWithoutThoughts {
  /** The answer after its thoughts, without leading space; without thoughts, the unchanged answer. */
  readonly text: string;
  /** Whether the answer ends within its thoughts. */
  readonly endsInThought: boolean;
}

/** Removes the thoughts at the start of an answer. */
export function withoutThoughts(answer: string): AnswerWithoutThoughts {
  let text = '';
  const filter = thoughtFilter({
    emit: (piece) => (text += piece),
    retract: () => (text = ''),
  });
  filter.push(answer);
  filter.end();
  return { text: text.replace(/<\|(?:return|end)\|>\s*$/, ''), endsInThought: filter.isInThought() };
}

export interface ThoughtFilterSink {
  /** Receives a piece of the answer. */
  emit(piece: string): void;
  /** Everything emitted so far was a thought. */
  retract(): void;
}

/** Filters an answer in pieces of any length. */
export interface ThoughtFilter {
  push(piece: string): void;
  /** Ends the answer: emits a piece that could have been the start of a tag. */
  end(): void;
  isInThought(): boolean;
}

/**
 * Emits an answer without its thoughts while it arrives. Removes any number of thoughts at the start, with the space after
 * them. Later, a closing tag without an opening one means that everything before it was a thought.
 */
export function thoughtFilter({ emit, retract }: ThoughtFilterSink): ThoughtFilter {
  let state: 'start' | 'thought' | 'answer' | 'settled' = 'start';
  let hasThought = false;
  /** The tag that ends the thought. */
  let closing = '';
  /** Received but not emitted, or kept to find a tag that is cut in two. */
  let buffer = '';

  /** Consumes a piece in a state. Returns the rest for the next state, or null if nothing is left. */
  const readers = {
    start(piece: string): string | null {
      buffer += piece;
      const begun = beginningOf(buffer, hasThought);
      if (begun === null) return null;
      ({ state, closing } = begun);
      buffer = '';
      return begun.rest;
    },
    thought(piece: string): string | null {
      const seen = buffer + piece;
      const at = seen.toLowerCase().indexOf(closing);
      buffer = at === -1 ? seen.slice(1 - LONGEST_TAG) : '';
      return at === -1 ? null : endOfThought(seen, at + closing.length);
    },
    answer(piece: string): string | null {
      const seen = buffer + piece;
      const tag = ANY_TAG.exec(seen);
      if (tag !== null && CLOSING_TAGS.has(tag[0].toLowerCase())) {
        retract();
        return endOfThought(seen, tag.index + tag[0].length);
      }
      buffer = seen.slice(1 - LONGEST_TAG);
      if (tag !== null) state = 'settled';
      emit(piece);
      return null;
    },
    settled: (piece: string): null => {
      emit(piece);
      return null;
    },
  };

  function endOfThought(seen: string, end: number): string {
    state = 'start';
    hasThought = true;
    buffer = '';
    return seen.slice(end);
  }

  return {
    push(piece) {
      for (let rest: string | null = piece; rest !== null && rest !== '';) rest = readers[state](rest);
    },
    end() {
      if (state === 'start') emit(hasThought ? buffer.trimStart() : buffer);
      buffer = '';
    },
    isInThought: () => state === 'thought',
  };
}

/**
 * Whether a text begins with a thought, and its closing tag, or with the answer. Null if the text is too short to tell.
 */
function beginningOf(text: string, hasThought: boolean) {
  const begun = text.trimStart();
  const lower = begun.slice(0, LONGEST_TAG).toLowerCase();
  const tag = IS_WORD.test(lower) ? undefined : BEGINNINGS.find(({ open }) => lower.startsWith(open));
  if (tag !== undefined) return { state: 'thought', closing: tag.close, rest: begun.slice(tag.open.length) } as const;
  if (BEGINNINGS.some(({ open }) => open.startsWith(lower))) return null;
  const state = hasThought ? 'settled' : 'answer';
  return { state, closing: '', rest: hasThought ? begun : text } as const;
}

/** Removes thoughts anywhere, from an answer of which the caller needs only a part. */
export function withoutAnyThoughts(answer: string): string {
  return withoutThoughts(answer).text.replace(ANY_THOUGHT, '');
}

const CLOSING_TAGS: ReadonlySet<string> = new Set(TAGS.map(({ close }) => close));
const ANY_TAG = new RegExp([...new Set(TAGS.flatMap(({ open, close }) => [open, close]))].map(escaped).join('|'), 'i');
const ANY_THOUGHT = new RegExp(
  TAGS.map(({ open, close }) => `${escaped(open)}[^]*?(?:${escaped(close)}|$)`).join('|'),
  'gi',
);
/** Length of the longest tag. */
const LONGEST_TAG = Math.max(...TAGS.flatMap(({ open, close }) => [open.length, close.length]));

function escaped(text: string): string {
  return text.replace(/[|<>/]/g, '\\$&');
}
