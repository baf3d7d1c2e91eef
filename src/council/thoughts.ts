/**
 * Keeps apart what a model thinks aloud and what it says. Models that reason put their thoughts before the answer,
 * between `<think>` and `</think>`; some servers' templates write the opening tag themselves, so that it never comes.
 */

/** An answer without its thoughts. */
export interface AnswerWithoutThoughts {
  /** From its first sign on that is no space, where thoughts went before; else the answer as it is. */
  readonly text: string;
  /** Whether the answer ended within its thoughts: nothing after them was said. */
  readonly endsInThought: boolean;
}

/** Takes the thoughts at the head of an answer away. */
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
  /** A piece of what is said. */
  emit(piece: string): void;
  /** What was told so far turns out to have been a thought. */
  retract(): void;
}

/** Hears an answer in pieces, cut anywhere. */
export interface ThoughtFilter {
  push(piece: string): void;
  /** The answer is whole: a piece that could have been the beginning of a tag is none. */
  end(): void;
  isInThought(): boolean;
}

/**
 * Tells what is said as it comes. At the head of an answer any number of thoughts is left out, with the space behind
 * them. Beyond the head only a closing tag counts that no opening one went before: all up to there was a thought.
 */
export function thoughtFilter({ emit, retract }: ThoughtFilterSink): ThoughtFilter {
  let place: 'head' | 'thought' | 'speech' | 'settled' = 'head';
  let hasThought = false;
  /** Heard, and not told yet or still looked at for a tag that came in two pieces. */
  let held = '';

  /** Each takes what came and returns what is left to be read from another place; null: nothing. */
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
      const heard = held + piece;
      const closing = CLOSING_TAG.exec(heard);
      held = closing === null ? heard.slice(-LONGEST_TAIL) : '';
      return closing === null ? null : endOfThought(heard, closing);
    },
    speech(piece: string): string | null {
      const heard = held + piece;
      const tag = ANY_TAG.exec(heard);
      if (tag?.[0].startsWith('</') === true) {
        retract();
        return endOfThought(heard, tag);
      }
      held = heard.slice(-LONGEST_TAIL);
      if (tag !== null) place = 'settled';
      emit(piece);
      return null;
    },
    settled(piece: string): string | null {
      emit(piece);
      return null;
    },
  };

  function endOfThought(heard: string, { index, 0: tag }: RegExpExecArray): string {
    place = 'head';
    hasThought = true;
    held = '';
    return heard.slice(index + tag.length);
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

/** Takes thoughts away wherever they stand, for an answer of which only a part is looked for. */
export function withoutAnyThoughts(answer: string): string {
  return withoutThoughts(answer).text.replace(/<think>[^]*?(?:<\/think>|$)/gi, '');
}

const OPENING = '<think>';
const CLOSING_TAG = /<\/think>/i;
const ANY_TAG = /<\/?think>/i;
/** What a tag can have sent ahead of its last sign. */
const LONGEST_TAIL = '</think>'.length - 1;
