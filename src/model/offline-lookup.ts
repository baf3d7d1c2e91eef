/** How the offline model uses tools: each once, with the topic, without understanding what comes back. */
import { excerpt } from './offline-topic.js';
import type { Brief, ToolCall, ToolDeclaration, ToolRound } from './port.js';

/** The calls it makes before it drafts: one of each tool, all at once. */
export function callsOffline(tools: readonly ToolDeclaration[], { topic }: Brief): readonly ToolCall[] {
  const argumentsJson = JSON.stringify({ query: excerpt(topic, 300) });
  return tools.map(({ name }) => ({ id: `offline_${name}`, name, argumentsJson }));
}

/** What came back, as lines of a list: the beginning of each piece found, with the mark or address to cite it by. */
export function lookedUp(rounds: readonly ToolRound[]): readonly string[] {
  return rounds
    .flatMap(({ exchanges }) => exchanges)
    .flatMap(({ call, result }) => {
      const pieces = [...result.matchAll(PIECES)].slice(0, SHOWN_PIECES);
      if (pieces.length === 0) return [`- Asked ${call.name}, got nothing to quote.`];
      return pieces.map(([, cite = '', text = '']) => `- "${excerpt(text, 120)}" ${cite}`);
    });
}

/** As tools write them down, each between tags that its text cannot close. */
const PIECES = /<(?:passage|page) cite="([^"]*)"[^>]*>\n([^]*?)\n<\/(?:passage|page)>/g;
const SHOWN_PIECES = 3;
