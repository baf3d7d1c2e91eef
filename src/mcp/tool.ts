/** A tool: one declaration for its listing and for its calls. */
import type { IncomingMessage } from 'node:http';
import type { Described, RequestName, SchemaRegistry } from '../api/schemas.js';
import { checkOf } from '../http/body.js';
import type { Grant, Scope } from '../keys/caller.js';

/** The call of a tool. */
export interface ToolCall {
  readonly caller: Grant;
  /** The client's request. */
  readonly req: IncomingMessage;
  /** Aborts when the client has gone or its key has ended. */
  readonly signal: AbortSignal;
  /** Tells the client what the call waits for, if the client wants to know. @param done grows from line to line */
  readonly onProgress?: (line: string, done: number) => void;
}

export interface ToolAnswer {
  /** For the assistant to read; the first text says what has happened and what to do next. */
  readonly texts: readonly string[];
  /** In the form of the REST API. */
  readonly structured: Readonly<Record<string, unknown>>;
}

/** A JSON Schema without references to other files. */
export type Schema = { readonly type: 'object' } & Readonly<Record<string, unknown>>;

export interface Tool {
  readonly name: string;
  /** What it does and when to use it, for the assistant. */
  readonly description: string;
  /** The scope that a key needs. */
  readonly scope: Scope;
  /** Name of the schema of its arguments. */
  readonly input: RequestName;
  readonly output: Schema;
  /** Whether a call changes nothing. */
  readonly isReading: boolean;
  /** @throws any error of problems.ts */
  call(args: unknown, call: ToolCall): Promise<ToolAnswer>;
}

/** A tool whose arguments are checked before its call. */
export function toolOf<N extends RequestName>(
  schemas: SchemaRegistry,
  {
    call,
    ...about
  }: Omit<Tool, 'call'> & {
    readonly input: N;
    call(args: Described<N>, call: ToolCall): Promise<ToolAnswer>;
  },
): Tool {
  const check = checkOf(schemas, about.input, 'arguments');
  return { ...about, call: (args, from) => call(check(args).value, from) };
}
