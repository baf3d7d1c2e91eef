/**
 * Removes a model's thoughts from its answer. Models that reason put them before the answer, between `<think>` and
 * `</think>`; some servers' templates write the opening tag into the prompt, so that the answer lacks it.
 */

/** An answer without its thoughts. */
export interface AnswerWithoutThoughts {
  /** The answer after its thoughts, without leading space; without thoughts the answer unchanged. */
  readonly text: string;
  /** Whether the answer ended within its thoughts, with no text after them. */
  readonly endsInThought: boolean;
}

/** Removes the thoughts at the head of an answer. */
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
  /** A piece of the answer proper. */
  emit(piece: string): void;
  /** Everything emitted so far turns out to have been a thought. */
  retract(): void;
}

/** Takes an answer in pieces, cut anywhere. */
export interface ThoughtFilter {
  push(piece: string): void;
  /** The answer is whole: a piece that could have been the beginning of a tag is none. */
  end(): void;
  isInThought(): boolean;
}

/**
 * Emits an answer without its thoughts as it comes. At its head any number of thoughts is left out, with the space after
 * them. Later only a closing tag without an opening one counts: everything before it was a thought.
 */
export function thoughtFilter({ emit, retract }: ThoughtFilterSink): ThoughtFilter {
  let place: 'head' | 'thought' | 'speech' | 'settled' = 'head';
  let hasThought = false;
  /** Received but not emitted yet, or kept to find a tag that is cut into two pieces. */
  let held = '';

  /** Per state: consumes a piece and returns the rest for the next state; null: nothing is left. */
  const readers = {
    head(piece: string): string | null {
      held += piece;
      const begun = held.trimStart();
      if (begun.length < OPENING.length && OPENING.startsWith(begun.toLowerCase())) return null;
      const isThought = begun.slice(0, OPENING.length).toLowerCase() === OPENING;
      const rest = isThought ? begun.slice(OPENING.length) : hasThought ? begun : held;
      place = isThought ? 'thought' : hasThought ? 'settled' : 'speech';
      held = '';
      return rest;
    },
    thought(piece: string): string | null {
      const seen = held + piece;
      const closing = CLOSING_TAG.exec(seen);
      held = closing === null ? seen.slice(-LONGEST_TAIL) : '';
      return closing === null ? null : endOfThought(seen, closing);
    },
    speech(piece: string): string | null {
      const seen = held + piece;
      const tag = ANY_TAG.exec(seen);
      if (tag?.[0].startsWith('</') === true) {
        retract();
        return endOfThought(seen, tag);
      }
      held = seen.slice(-LONGEST_TAIL);
      if (tag !== null) place = 'settled';
      emit(piece);
      return null;
    },
    settled(piece: string): string | null {
      emit(piece);
      return null;
    },
  };

  function endOfThought(seen: string, { index, 0: tag }: RegExpExecArray): string {
    place = 'head';
    hasThought = true;
    held = '';
    return seen.slice(index + tag.length);
  }

  return {
    push(piece) {
      for (let rest: string | null = piece; rest !== null && rest !== '';) rest = readers[place](rest);
    },
    end() {
      if (place === 'head') emit(hasThought ? held.trimStart() : held);
      held = '';
    },
    isInThought: () => place === 'thought',
  };
}

/** Removes thoughts wherever they are, for an answer of which only a part is looked for. */
export function withoutAnyThoughts(answer: string): string {
  return withoutThoughts(answer).text.replace(/<think>[^]*?(?:<\/think>|$)/gi, '');
}

const OPENING = '<think>';
const CLOSING_TAG = /<\/think>/i;
const ANY_TAG = /<\/?think>/i;
/** Longest beginning of a tag that may still be completed by the next piece. */
const LONGEST_TAIL = '</think>'.length - 1;
