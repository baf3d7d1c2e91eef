/** Tool calls in chat completions, whole or in pieces, in the form that the package reads. */
import { fieldOf, isRecord } from '../../system/untrusted.js';
import { MAX_CALLS } from '../port.js';

/**
 * The tool calls of one answer, at most 128; those that follow are left out. Some servers give every call index 0 or none, and
 * no id or one id to all: each call gets an index and an id of its own. Arguments come as JSON text; some servers send the
 * object itself, or none. Takes time in proportion to what the server sends, in pieces of any length.
 */
export class ChatCalls {
  /** As in ServerCall. */
  readonly #rounds: number;
  readonly #calls: StreamedCall[] = [];
  /** The last call with each index that the server sent. */
  readonly #last = new Map<unknown, StreamedCall>();
  readonly #ids = new Set<string>();

  constructor(rounds: number) {
    this.#rounds = rounds;
  }

  /** Adds the calls of a whole answer. Calls without a name are left out. */
  addWhole(given: readonly unknown[]): void {
    for (const each of given) {
      if (this.#calls.length >= MAX_CALLS) return;
      const piece = pieceIn(each);
      if (isText(piece.name)) this.#begin(piece);
    }
  }

  /** Adds pieces of calls in a stream. */
  addPieces(given: readonly unknown[]): void {
    for (const each of given) {
      const piece = pieceIn(each);
      const last = this.#last.get(piece.sent);
      if (last !== undefined && !isNextCall(piece, last)) extend(last, piece);
      else if (this.#calls.length < MAX_CALLS) this.#begin(piece);
      // The rest of a call that is left out must not extend the one before.
      else this.#last.delete(piece.sent);
    }
  }

  /** The calls so far, whole. */
  all(): readonly object[] {
    return this.#calls.map(({ id, name, args, signature }, index) => ({
      ...(isText(signature) && { extra_content: { google: { thought_signature: signature } } }),
      index,
      id,
      function: { ...(isText(name) && { name }), arguments: args },
    }));
  }

  #begin(piece: Piece): void {
    const own = isText(piece.id) && !this.#ids.has(piece.id) ? piece.id : null;
    const id = own ?? `call_${this.#rounds}_${this.#calls.length}`;
    const call = { ...piece, id, sentId: piece.id, args: '', depth: 0, isInString: false, isEscaped: false };
    this.#ids.add(id);
    this.#calls.push(call);
    this.#last.set(piece.sent, call);
    extend(call, { args: piece.args });
  }
}

/** A call, or a piece of one, as the server sent it. */
interface Piece {
  readonly sent: unknown;
  readonly id: unknown;
  readonly name: unknown;
  readonly args: string;
  /** Gemini's thought signature of a call, which goes back with it. */
  readonly signature: unknown;
}

interface StreamedCall {
  readonly id: string;
  readonly sentId: unknown;
  readonly name: unknown;
  signature: unknown;
  /** All that came of the arguments. */
  args: string;
  /** Brackets that the arguments have opened and not closed. */
  depth: number;
  isInString: boolean;
  isEscaped: boolean;
}

function pieceIn(given: unknown): Piece {
  const { name, arguments: args } = recordIn(given, 'function');
  const { google } = recordIn(given, 'extra_content');
  const text = typeof args === 'string' ? args : isRecord(args) ? JSON.stringify(args) : '';
  const signature = fieldOf(google, 'thought_signature');
  return { sent: fieldOf(given, 'index'), id: fieldOf(given, 'id'), name, args: text, signature };
}

/** Whether a piece with the index of a call begins the next one. Servers may repeat a call's name in each of its pieces. */
function isNextCall({ sent, id, name, args }: Piece, last: StreamedCall): boolean {
  if (!isText(name)) return false;
  if (name !== last.name || (isText(id) ? id !== last.sentId : sent === undefined)) return true;
  return /^\s*\{/.test(args) && last.depth === 0 && last.args !== '';
}

/** Adds a piece to a call. Counts the brackets of the piece alone: the arguments are never read as a whole again. */
function extend(call: StreamedCall, { args, signature }: Partial<Piece> & Pick<Piece, 'args'>): void {
  call.args += args;
  call.signature ??= signature;
  for (let at = 0; at < args.length; at += 1) {
    const sign = args[at];
    if (call.isEscaped) call.isEscaped = false;
    else if (sign === '"') call.isInString = !call.isInString;
    else if (call.isInString) call.isEscaped = sign === '\\';
    else if (sign === '{' || sign === '[') call.depth += 1;
    else if (sign === '}' || sign === ']') call.depth -= 1;
  }
}

function recordIn(value: unknown, name: string): Readonly<Record<string, unknown>> {
  const field = fieldOf(value, name);
  return isRecord(field) ? field : {};
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
