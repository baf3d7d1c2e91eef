/** A node's tools between its graph, the record and its prompt. */
import type { NodeTools } from '../generated/schemas.js';
import type { Brief, ToolName } from '../model/port.js';

/** The tools of a node as its start is recorded: `webSearch: unavailable` is one it may use and does not have now. */
export function toolsAsRecorded(tools: NodeTools, available: readonly ToolName[]): string[] {
  return TOOL_NAMES.filter((tool) => tools[tool]).map((tool) => (available.includes(tool) ? tool : missing(tool)));
}

/** What a brief tells of the tools that were recorded. */
export function toldTools(recorded: readonly string[]): Pick<Brief, 'tools' | 'missingTools'> {
  const tools = grantedTools(recorded);
  const missingTools = TOOL_NAMES.filter((tool) => recorded.includes(missing(tool)));
  return { ...(tools.length > 0 && { tools }), ...(missingTools.length > 0 && { missingTools }) };
}

/** The tools that were recorded as given. What a node may call is decided by this alone, never by a text. */
export function grantedTools(recorded: readonly string[]): readonly ToolName[] {
  return TOOL_NAMES.filter((tool) => recorded.includes(tool));
}

function missing(tool: ToolName): string {
  return `${tool}: unavailable`;
}

const TOOL_NAMES: readonly ToolName[] = ['webSearch', 'pdfReader'];
