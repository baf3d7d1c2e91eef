/** The topic of a run from the messages of a chat. */
import { codePoints } from '../graph/limits.js';
import { quoted, refusal } from './errors.js';

/** A message as a client sends it. */
export interface SentMessage {
  readonly role: string;
  readonly content?: string | readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Its place in the body. */
  readonly at: readonly (string | number)[];
}

export interface Conversation {
  readonly topic: string;
  /** The text of the last user message. */
  readonly lastUserText: string;
}

/** Most code points of a topic, as for every start. */
const MAX_TOPIC = 10_000;

/** Roles, with the names that the transcript gives them. */
const ROLES: ReadonlyMap<string, string> = new Map([
  ['system', 'System'],
  ['developer', 'Developer'],
  ['user', 'User'],
  ['assistant', 'Assistant'],
]);

/** Types of parts that hold a text. */
const TEXT_PARTS: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text']);

/**
 * The topic: the text of the last user message alone, or after a transcript of all other messages with their roles.
 *
 * @param field the field of the body that holds the messages
 * @throws {RequestRefused} 400 for other content than text, other roles, no topic or a topic that is too long
 */
export function conversationOf(messages: readonly SentMessage[], field: string): Conversation {
  const read = messages.map((message) => ({ name: nameOf(message), text: textOf(message) }));
  const last = read.findLast(({ name }) => name === 'User');
  if (last === undefined || last.text === '') {
    throw refusal('The last user message holds the topic, which must not be empty', {
      code: 'empty_topic',
      at: [field],
    });
  }
  const others = read.filter((each) => each !== last && each.text !== '');
  const parts = others.length === 0 ? [last.text] : [...others, last].map(({ name, text }) => `${name}: ${text}`);
  const topic = parts.join('\n\n');
  const length = codePoints(topic);
  if (length <= MAX_TOPIC) return { topic, lastUserText: last.text };
  const message = `The messages have ${length} characters with their roles; a council takes at most ${MAX_TOPIC}`;
  throw refusal(message, { code: 'context_length_exceeded', at: [field] });
}

function nameOf({ role, at }: SentMessage): string {
  const name = ROLES.get(role);
  if (name !== undefined) return name;
  const message = `A message of role ${quoted(role)} is not supported; system, developer, user and assistant are`;
  throw refusal(message, { code: 'unsupported_content', at: [...at, 'role'] });
}

function textOf({ content = '', at }: SentMessage): string {
  if (typeof content === 'string') return content;
  const texts = content.map(({ type, text }, index) => {
    if (TEXT_PARTS.has(type) && typeof text === 'string') return text;
    const message = TEXT_PARTS.has(type)
      ? 'The text of the part should be a string'
      : `Content of type ${quoted(type)} is not supported; text is`;
    throw refusal(message, { code: 'unsupported_content', at: [...at, 'content', index] });
  });
  return texts.join('');
}
