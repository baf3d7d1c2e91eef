/** Tool calls that a model wrote into its text, as models do whose server does not know their template. */
import { isRecord, listOf } from '../system/untrusted.js';
import type { FoundObject } from './json-in-text.js';
import { jsonObjectsIn, parseObject } from './json-in-text.js';
import { withoutAnyThoughts } from './thoughts.js';

export interface WrittenCall {
  readonly name: string;
  readonly argumentsJson: string;
}

type Calls = readonly WrittenCall[] | 'malformed';

/**
 * The calls that an answer makes after its thoughts: behind a mark of a template, or as JSON objects of the form of a call
 * at its end. JSON or a mark in the middle of prose is part of the answer, as is a mark in a code block that prose follows.
 *
 * @param names of the tools that the model was offered
 * @returns the calls, none if the text is an answer, or `malformed` if it calls a tool that was not offered, or unreadably
 */
export function callsInText(answer: string, names: ReadonlySet<string>): Calls {
  const text = withoutAnyThoughts(answer.replace(ANALYSIS, '')).slice(-MAX_SEARCHED_CHARS);
  // A mark in a string of an object is data.
  const marked = parseObject(text) === null ? text.replace(QUOTED_CODE, withoutMark).split(MARK).slice(1) : [];
  return marked.length > 0 ? markedCalls(marked, names) : callsAtEnd(text, names);
}

function withoutMark(code: string): string {
  return MARK.test(code) ? '' : code;
}

/** @param parts what follows each mark */
function markedCalls(parts: readonly string[], names: ReadonlySet<string>): Calls {
  const calls = parts
    .map((part) => part.split(END_MARK)[0] ?? '')
    .filter((part) => part.trim() !== '')
    .map((part): Calls => {
      const tagged = callInTags(part, names);
      if (tagged !== null) return tagged;
      const objects = [...jsonObjectsIn(part)];
      const read = objects.flatMap(({ value }) => callsOf(value, names));
      return read.length > 0 ? offered(read, names) : namedCall(part, objects, names);
    });
  const all = calls.flatMap((each) => (each === 'malformed' ? [] : each));
  return calls.length === 0 || calls.includes('malformed') ? 'malformed' : all;
}

/** A call whose name stands before its arguments, as in `<function=web_search>{"query": "oaks"}`. */
function namedCall(part: string, [given]: readonly FoundObject[], names: ReadonlySet<string>): Calls {
  return given === undefined ? 'malformed' : callOf(part.slice(0, given.begin), given.value, names);
}

function callOf(before: string, given: object, names: ReadonlySet<string>): Calls {
  const [name, ...others] = (before.match(/[\w-]+/g) ?? []).filter((word) => names.has(word));
  return name === undefined || others.length > 0 ? 'malformed' : [{ name, argumentsJson: JSON.stringify(given) }];
}

/** A call with a tag for each argument, as Qwen, Claude and GLM write it, or null if it has none. */
function callInTags(part: string, names: ReadonlySet<string>): Calls | null {
  const [first, ...others] = part.matchAll(ARGUMENT);
  if (first === undefined) return null;
  const given = [first, ...others].map(([, name = '', value = '']) => [name, numberOrText(value.trim())]);
  return callOf(part.slice(0, first.index), Object.fromEntries(given) as object, names);
}

function numberOrText(value: string): number | string {
  return /^\d{1,2}$/.test(value) ? Number(value) : value;
}

/** The calls in the last objects of a text that ends in objects. */
function callsAtEnd(text: string, names: ReadonlySet<string>): Calls {
  const calls: WrittenCall[] = [];
  let end = text.length;
  for (const { value, ...found } of [...jsonObjectsIn(text)].toReversed()) {
    const called = callsOf(value, names);
    if (called.length === 0 || !BETWEEN_CALLS.test(text.slice(found.end, end))) break;
    calls.unshift(...called);
    end = found.begin;
  }
  if (calls.length > 0) return offered(calls, names);
  return breaksOffInCall(text) ? 'malformed' : [];
}

/** Whether a text ends in a call that is no JSON. */
function breaksOffInCall(text: string): boolean {
  const prose = text.replace(QUOTED_CODE, '');
  const found = BROKEN_CALL.exec(prose);
  if (found === null || /\n[ \t]*\n/.test(prose.slice(found.index).trim())) return false;
  const brace = found.index + found[0].indexOf('{');
  return [...jsonObjectsIn(prose)].every(({ begin }) => begin !== brace);
}

function offered(calls: readonly WrittenCall[], names: ReadonlySet<string>): Calls {
  return calls.every(({ name }) => names.has(name)) ? calls : 'malformed';
}

/** The calls in an object of the form of a call, or of a list of calls. */
function callsOf(value: unknown, names: ReadonlySet<string>): readonly WrittenCall[] {
  if (!isRecord(value)) return [];
  const inner = value['tool_calls'] === undefined ? [value['function']] : listOf(value['tool_calls']);
  if (isRecord(inner[0])) return inner.flatMap((each) => callsOf(each, names));
  const name = firstOf(value, ['name', 'function', 'tool']);
  const given = firstOf(value, ['arguments', 'parameters', 'input']);
  if (typeof name !== 'string') return [];
  const hasArguments = typeof given === 'string' || isRecord(given);
  const hasOthers = Object.keys(value).some((key) => !KEYS_OF_CALL.has(key));
  // The name of an offered tool is proof enough to leave out the arguments, or to add a key.
  if (names.has(name) ? !hasArguments && hasOthers : !hasArguments || hasOthers) return [];
  return [{ name, argumentsJson: typeof given === 'string' ? given : JSON.stringify(given ?? {}) }];
}

function firstOf(value: Readonly<Record<string, unknown>>, keys: readonly string[]): unknown {
  return keys.map((key) => value[key]).find((field) => field !== undefined);
}

const KEYS_OF_CALL: ReadonlySet<string> = new Set([
  ...['name', 'function', 'tool', 'arguments', 'parameters', 'input', 'id', 'type'],
]);

/** `<parameter=query>oaks</parameter>`, `<parameter name="query">…`, `<arg_key>query</arg_key><arg_value>oaks</arg_value>`. */
const ARGUMENT =
  /<(?:parameter(?:=| name=)["']?|arg_key>)([\w-]+)(?:["']?>|<\/arg_key>\s{0,9}<arg_value>)((?:(?!<\/?(?:parameter|arg_))[^])*)<\/(?:parameter|arg_value)>/g;

/** Thoughts of gpt-oss, which a call may follow; also from servers that drop the special tokens. */
const ANALYSIS =
  /<\|channel\|>analysis<\|message\|>[^]*?(?=<\|end\|>|<\|channel\|>|$)|^\s*analysis(?=[A-Za-z])[^]*?(?=assistant(?:commentary|final)|$)/g;

/** Code in a line, and code blocks, if text follows. */
const QUOTED_CODE = /(?<!`)`[^`\n]+`(?!`)(?=\s*\S)|```[^]*?```(?=\s*\S)/g;

/**
 * What begins a call in the templates of Hermes and Qwen, Mistral, Llama, Claude, DeepSeek, Kimi and gpt-oss. A tag counts
 * only before a call, so that prose may mention it.
 */
const MARK = new RegExp(
  [
    String.raw`<(?:tool_calls?|function_calls?)>(?=\s*(?:\x60\x60\x60\w*\s*)?(?:[{[<]|$|[\w.-]+\s*[{<]))`,
    String.raw`<function=(?=\w)|<invoke name=(?=["'\w])`,
    String.raw`\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_calls?\|>`,
    String.raw`<[|｜]tool[▁_]calls?(?:[▁_]section)?[▁_]begin[|｜]>`,
    String.raw`(?:<\|channel\|>|assistant|^\s*)commentary\s+to=(?:functions\.)?(?=\w)|assistant to=functions\.`,
  ].join('|'),
);

const END_MARK = /<\/(?:tool_call|function_call|function|invoke)>|<[|｜]tool[▁_]call[▁_]end[|｜]>|<\|call\|>/;

/** What may separate calls and follow them: brackets, commas, code fences, tags. */
const BETWEEN_CALLS = /^(?:[\s;,[\]]|`\w*|<\|\w+\|>|<\/\w+>)*$/;

/** The beginning of a call at the beginning of a line, also in quotes that JSON does not know. */
const BROKEN_CALL =
  /^[ \t]*[{[]\s*(?:\{\s*)?["'](?:name|tool|function)["']\s*:\s*["'][\w.-]+["']\s*,\s*["'](?:arguments|parameters)["']\s*:/m;

/** Length of an answer's end that is searched, in UTF-16 units. Longer answers are no drafts. */
const MAX_SEARCHED_CHARS = 256 * 1024;
