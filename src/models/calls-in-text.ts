/** Tool calls that a model wrote into its text, as models do whose server does not know their template. */
import { isRecord } from '../system/untrusted.js';

export interface WrittenCall {
  readonly name: string;
  readonly argumentsJson: string;
}

/**
 * The calls in a text that is nothing else: in `<tool_call>` tags (Hermes, Qwen), after `[TOOL_CALLS]` (Mistral), or one
 * bare JSON object or list of `{"name", "arguments"}`, in a code fence or not.
 *
 * @param names of the tools that were offered; a call of any other name is none
 * @returns the calls, none if the text is an answer, or `malformed` if a tag opens that holds no call
 */
export function callsInText(text: string, names: ReadonlySet<string>): readonly WrittenCall[] | 'malformed' {
  const tagged = text.split(/<tool_call>|\[TOOL_CALLS\]/).slice(1);
  if (tagged.length > 0) {
    const calls = tagged.flatMap((each) => callsIn(each.split('</tool_call>')[0] ?? '', names));
    return calls.length > 0 ? calls : 'malformed';
  }
  const bare = /^\s*(?:```(?:json)?\s*)?([{[][^]*[}\]])\s*(?:```)?\s*$/.exec(text)?.[1];
  return bare === undefined ? [] : callsIn(bare, names);
}

function callsIn(json: string, names: ReadonlySet<string>): readonly WrittenCall[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return [];
  }
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  return entries.flatMap((entry) => {
    const called = isRecord(entry) && isRecord(entry['function']) ? entry['function'] : entry;
    if (!isRecord(called) || typeof called['name'] !== 'string' || !names.has(called['name'])) return [];
    const given = called['arguments'] ?? called['parameters'] ?? {};
    return [{ name: called['name'], argumentsJson: typeof given === 'string' ? given : JSON.stringify(given) }];
  });
}
