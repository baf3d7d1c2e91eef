/** Tool calls in chat completions, whole or in pieces, in the form that the package reads. */
import { fieldOf, isRecord, jsonIn } from '../../system/untrusted.js';

/** The calls of an answer so far. */
export interface CallsSoFar {
  readonly calls: StreamedCall[];
  /** As in ServerCall. */
  readonly rounds: number;
}

/**
 * The calls of a message, or pieces of calls in a stream. Some servers give every call index 0 or none, and no id or one id
 * to all: each call gets an index and an id of its own. Arguments come as JSON text; some servers send the object itself,
 * or none. A whole answer's calls without a name are left out.
 */
export function callsIn(given: readonly unknown[], field: 'message' | 'delta', soFar: CallsSoFar): readonly object[] {
  if (field === 'delta') return given.map((each) => callIn(each, fieldOf(each, 'index'), soFar));
  const named = given.filter((each) => isText(fieldOf(fieldOf(each, 'function'), 'name')));
  return named.map((each, index) => callIn(each, index, soFar));
}

/** @param sent the index that the server sent; in a whole answer the call's place */
function callIn(given: unknown, sent: unknown, { calls, rounds }: CallsSoFar): object {
  const name = fieldOf(fieldOf(given, 'function'), 'name');
  const piece = { sent, id: fieldOf(given, 'id'), name, args: argumentsOf(given) };
  const last = calls.findLast((each) => each.sent === piece.sent);
  if (last !== undefined && !isNextCall(piece, last)) {
    last.args += piece.args;
    return { ...signed(given), index: calls.indexOf(last), function: { arguments: piece.args } };
  }
  const isOwn = isText(piece.id) && calls.every(({ id }) => id !== piece.id);
  const id = isOwn ? piece.id : `call_${rounds}_${calls.length}`;
  const named = isText(name) ? { name } : {};
  const index = calls.push(piece) - 1;
  return { ...signed(given), index, id, function: { ...named, arguments: piece.args } };
}

interface StreamedCall {
  /** The index that the server sent. */
  readonly sent: unknown;
  readonly id: unknown;
  readonly name: unknown;
  /** All that came of the arguments. */
  args: string;
}

/** Whether a piece with the index of a call begins the next one. Servers may repeat a call's name in each of its pieces. */
function isNextCall({ sent, id, name, args }: StreamedCall, last: StreamedCall): boolean {
  if (!isText(name)) return false;
  if (name !== last.name || (isText(id) ? id !== last.id : sent === undefined)) return true;
  return args.trimStart().startsWith('{') && isRecord(jsonIn(last.args));
}

/** Gemini's thought signature of a call, which goes back with it. */
function signed(call: unknown): object {
  const signature = fieldOf(fieldOf(fieldOf(call, 'extra_content'), 'google'), 'thought_signature');
  return isText(signature) ? { extra_content: { google: { thought_signature: signature } } } : {};
}

function argumentsOf(call: unknown): string {
  const given = fieldOf(fieldOf(call, 'function'), 'arguments');
  if (typeof given === 'string') return given;
  return isRecord(given) ? JSON.stringify(given) : '';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
