/** The topic and the material of a run from the messages of a chat. */
import { cutAtSentence } from '../council/cut.js';
import { utf8Bytes } from '../graph/limits.js';
import { brokenLimit } from '../http/matter.js';
import { quoted, refusal } from './errors.js';

/** A message as a client sends it. */
export interface SentMessage {
  readonly role: string;
  readonly content?: string | readonly Readonly<Record<string, unknown>>[] | undefined;
  /** The calls of tools that it makes. */
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  /** Its place in the body. */
  readonly at: readonly (string | number)[];
}

export interface Conversation {
  /** The text of the last user message, at most 10,000 code points of it. */
  readonly topic: string;
  /** All other messages with their roles, and the last user message if the topic is only its beginning; empty without. */
  readonly material: string;
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
  ['tool', 'Tool'],
  ['function', 'Tool'],
]);

/** Types of parts that hold a text. */
const TEXT_PARTS: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text']);

/**
 * The topic and the material of a chat.
 *
 * @param field the field of the body that holds the messages
 * @param earlier a transcript of what came before these messages, or ''
 * @throws {RequestRefused} 400 for other content than text, other roles, no topic or a material that is too long
 */
export function conversationOf(
  messages: readonly SentMessage[],
  { field, earlier = '', maxBytes }: { readonly field: string; readonly earlier?: string; readonly maxBytes: number },
): Conversation {
  const read = messages.map((message) => ({ name: nameOf(message), text: textOf(message) }));
  const last = read.findLast(({ name }) => name === 'User');
  if (last === undefined || last.text === '') {
    throw refusal('The last user message holds the topic, which must not be empty', {
      code: 'empty_topic',
      at: [field],
    });
  }
  const topic = cutAtSentence(last.text, MAX_TOPIC);
  const others = topic === last.text ? read.filter((each) => each !== last) : read;
  const spoken = others.filter(({ text }) => text !== '').map(({ name, text }) => `${name}: ${text}`);
  const material = [...(earlier === '' ? [] : [earlier]), ...spoken].join('\n\n');
  const limit = brokenLimit(material, maxBytes);
  if (limit === null) return { topic, material, lastUserText: last.text };
  const message = `The messages have ${utf8Bytes(material)} bytes beside the topic; a council takes at most ${limit}`;
  throw refusal(message, { code: 'context_length_exceeded', at: [field] });
}

function nameOf({ role, at }: SentMessage): string {
  const name = ROLES.get(role);
  if (name !== undefined) return name;
  const message = `A message of role ${quoted(role)} is not supported; system, user, assistant and tool are`;
  throw refusal(message, { code: 'unsupported_content', at: [...at, 'role'] });
}

/** The text of a message, and the calls that it makes as text. */
function textOf({ content = '', calls = [], at }: SentMessage): string {
  const called = calls.map((call) => `[calls ${call.name} with ${call.arguments}]`);
  return [contentOf(content, at), ...called].filter((each) => each !== '').join('\n');
}

function contentOf(content: NonNullable<SentMessage['content']>, at: SentMessage['at']): string {
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
