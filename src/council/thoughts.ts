/**
 * Removes a model's thoughts from its answer. Reasoning models write them before the answer, between `<think>` and
 * `</think>`. Some servers put the opening tag into the prompt, so that the answer lacks it.
 */

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
  return { text, endsInThought: filter.isInThought() };
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
  /** Received but not emitted, or kept to find a tag that is cut in two. */
  let buffer = '';

  /** Consumes a piece in a state. Returns the rest for the next state, or null if nothing is left. */
  const readers = {
    start(piece: string): string | null {
      buffer += piece;
      const begun = buffer.trimStart();
      if (begun.length < OPENING.length && OPENING.startsWith(begun.toLowerCase())) return null;
      const isThought = begun.slice(0, OPENING.length).toLowerCase() === OPENING;
      const rest = isThought ? begun.slice(OPENING.length) : hasThought ? begun : buffer;
      state = isThought ? 'thought' : hasThought ? 'settled' : 'answer';
      buffer = '';
      return rest;
    },
    thought(piece: string): string | null {
      const seen = buffer + piece;
      const closing = CLOSING_TAG.exec(seen);
      buffer = closing === null ? seen.slice(-LONGEST_TAIL) : '';
      return closing === null ? null : endOfThought(seen, closing);
    },
    answer(piece: string): string | null {
      const seen = buffer + piece;
      const tag = ANY_TAG.exec(seen);
      if (tag?.[0].startsWith('</') === true) {
        retract();
        return endOfThought(seen, tag);
      }
      buffer = seen.slice(-LONGEST_TAIL);
      if (tag !== null) state = 'settled';
      emit(piece);
      return null;
    },
    settled(piece: string): string | null {
      emit(piece);
      return null;
    },
  };

  function endOfThought(seen: string, { index, 0: tag }: RegExpExecArray): string {
    state = 'start';
    hasThought = true;
    buffer = '';
    return seen.slice(index + tag.length);
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

/** Removes thoughts anywhere, from an answer of which the caller needs only a part. */
export function withoutAnyThoughts(answer: string): string {
  return withoutThoughts(answer).text.replace(/<think>[^]*?(?:<\/think>|$)/gi, '');
}

const OPENING = '<think>';
const CLOSING_TAG = /<\/think>/i;
const ANY_TAG = /<\/?think>/i;
/** Longest start of a tag that the next piece may complete. */
const LONGEST_TAIL = '</think>'.length - 1;
