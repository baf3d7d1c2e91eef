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
    open,
    close: '<|channel|>final<|message|>',
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
export function thoughtFilter(sink: ThoughtFilterSink): ThoughtFilter {
  const state: FilterState = { place: 'start', hasThought: false, closing: '', space: '', buffer: '' };
  return {
    push(piece) {
      let rest: string | null = piece;
      while (rest !== null && rest !== '') rest = READERS[state.place](rest, state, sink);
    },
    end() {
      if (state.place === 'start') sink.emit(state.hasThought ? state.buffer : state.space + state.buffer);
      state.buffer = '';
    },
    isInThought: () => state.place === 'thought',
  };
}

interface FilterState {
  /** Where the next piece is. Settled: no tag can follow that counts. */
  place: 'start' | 'thought' | 'answer' | 'settled';
  hasThought: boolean;
  /** The tag that ends the thought. */
  closing: string;
  /** Space before what may be a tag at the start. */
  space: string;
  /** Received but not emitted, or kept to find a tag that is cut in two. */
  buffer: string;
}

type Reader = (piece: string, state: FilterState, sink: ThoughtFilterSink) => string | null;

/** Consumes a piece at a place. Returns the rest for the next place, or null if nothing is left. */
const READERS: Readonly<Record<FilterState['place'], Reader>> = {
  start(piece, state) {
    const came = state.buffer + piece;
    const text = came.trimStart();
    state.space += came.slice(0, came.length - text.length);
    const begun = beginningOf(text, state.hasThought);
    state.buffer = begun === null ? text : '';
    if (begun === null) return null;
    const rest = begun.place === 'answer' ? state.space + begun.rest : begun.rest;
    state.place = begun.place;
    state.closing = begun.closing;
    state.space = '';
    return rest;
  },
  thought(piece, state) {
    const seen = state.buffer + piece;
    // Stops at the tag: an answer may hold a million thoughts.
    const tag = CLOSINGS.get(state.closing)?.exec(seen);
    if (tag) return endOfThought(seen, tag.index + tag[0].length, state);
    state.buffer = seen.slice(1 - LONGEST_TAG);
    return null;
  },
  answer(piece, state, { emit, retract }) {
    const seen = state.buffer + piece;
    const tag = ANY_TAG.exec(seen);
    if (tag !== null && CLOSING_TAGS.has(tag[0].toLowerCase())) {
      retract();
      return endOfThought(seen, tag.index + tag[0].length, state);
    }
    state.buffer = seen.slice(1 - LONGEST_TAG);
    if (tag !== null) state.place = 'settled';
    emit(piece);
    return null;
  },
  settled(piece, _state, { emit }) {
    emit(piece);
    return null;
  },
};

function endOfThought(seen: string, end: number, state: FilterState): string {
  state.place = 'start';
  state.hasThought = true;
  state.buffer = '';
  return seen.slice(end);
}

/**
 * Whether a text begins with a thought, and its closing tag, or with the answer. Null if the text is too short to tell.
 *
 * @param begun without leading space
 */
function beginningOf(begun: string, hasThought: boolean) {
  const lower = begun.slice(0, LONGEST_TAG).toLowerCase();
  const tag = IS_WORD.test(lower) ? undefined : BEGINNINGS.find(({ open }) => lower.startsWith(open));
  if (tag !== undefined) return { place: 'thought', closing: tag.close, rest: begun.slice(tag.open.length) } as const;
  if (BEGINNINGS.some(({ open }) => open.startsWith(lower))) return null;
  const place = hasThought ? 'settled' : 'answer';
  return { place, closing: '', rest: begun } as const;
}

/** Removes thoughts anywhere, from an answer of which the caller needs only a part. */
export function withoutAnyThoughts(answer: string): string {
  return withoutThoughts(answer).text.replace(ANY_THOUGHT, '');
}

const CLOSINGS: ReadonlyMap<string, RegExp> = new Map(
  BEGINNINGS.map(({ close }) => [close, new RegExp(escaped(close), 'i')]),
);
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
