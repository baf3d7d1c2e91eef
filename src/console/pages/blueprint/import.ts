/**
 * Blueprints from files: the service's own, and those of front ends that draw with React Flow, whose nodes keep what an
 * agent is under `data`. What is understood is set beside what was there; nothing of a node or an edge gets lost.
 */
import type { BlueprintEdge, BlueprintNode, NodeRole } from '../../../generated/schemas.js';
import { conditionFault } from '../../record/drawn-graph.js';
import type { Draft } from './draft.js';
import { changed, isRecord, isRole } from './draft.js';

export interface Imported {
  readonly draft: Draft;
  /** What was read as something else, or left out, in sentences. */
  readonly notes: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Where files keep the council inside of something else. */
const WRAPPERS = ['blueprint', 'council', 'graph', 'flow', 'data', 'definition', 'config', 'json'];
/** What follows from a saved record, and is not to be saved again. */
const DERIVED = ['id', 'version', 'createdAt', 'updatedAt', 'warnings', 'roles', 'etag'];
const READ = ['name', 'title', 'label', 'nodes', 'edges', 'approvals', ...DERIVED];

/** @param fallback its name, where the file has none @throws {TypeError} and {SyntaxError}, saying why not */
export function importBlueprint(text: string, fallback: string): Imported {
  const value: unknown = JSON.parse(text);
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const outer = isRecord(all[0]) ? all[0] : {};
  const council = [outer, ...WRAPPERS.map((name) => outer[name])].filter(isRecord).find(holdsNodes);
  if (council === undefined) throw new TypeError('There is no list of nodes in this file.');
  const notes = new Set<string>();
  if (all.length > 1) notes.add(`The file holds ${all.length} blueprints: this is the first.`);
  const dropped = Object.keys(council).filter((name) => !READ.includes(name));
  if (dropped.length > 0) notes.add(`Left out: ${dropped.join(', ')}.`);

  const listed = council.nodes.filter(isRecord);
  const marks = new Set(listed.filter(isMark).map((node) => textAt([node], ['id'])));
  if (marks.size > 0) notes.add(`Left out, as they only mark begin and end: ${[...marks].join(', ')}.`);
  const nodes = listed.filter((node) => !isMark(node)).map((node, at) => nodeOf(node, at, notes));
  const edges = (Array.isArray(council.edges) ? council.edges : []).filter(isRecord).flatMap((edge) => {
    const read = edgeOf(edge, notes);
    if (read === null) notes.add('Left out: an edge without source and target.');
    return read === null || marks.has(read.source) || marks.has(read.target) ? [] : [read];
  });
  const name = textAt([council, outer], ['name', 'title', 'label']) ?? fallback;
  const { approvals } = council;
  return { draft: { name, nodes, edges, ...(isRecord(approvals) && { approvals }) }, notes: [...notes] };
}

function holdsNodes(value: Fields): value is Fields & { readonly nodes: readonly unknown[] } {
  return Array.isArray(value.nodes);
}

/** A node that is no agent but marks where a drawing begins or ends. */
function isMark(node: Fields): boolean {
  const data = isRecord(node.data) ? node.data : {};
  const isNamedSo = [node.type, data.type, node.id].some(
    (name) => typeof name === 'string' && /^_*(start|end|input|output)_*(node)?$/i.test(name),
  );
  return isNamedSo && textAt([node, data], PROMPTS) === null;
}

const PROMPTS = ['systemPrompt', 'system_prompt', 'prompt', 'instructions', 'systemMessage', 'system_message'];
const NUMBERS = {
  temperature: ['temperature'],
  maxOutputTokens: ['maxOutputTokens', 'max_output_tokens', 'maxTokens', 'max_tokens'],
  timeoutMs: ['timeoutMs', 'timeout_ms'],
  maxAttempts: ['maxAttempts', 'max_attempts'],
} as const;

function nodeOf(node: Fields, at: number, notes: Set<string>): BlueprintNode {
  const id = textAt([node], ['id']) ?? `node-${at + 1}`;
  // A record of the service is taken as it is, with whatever else it holds.
  if (!isRecord(node.data) || typeof node.systemPrompt === 'string') return { ...node, id };
  const { data } = node;
  const sources = [node, data, ...[data.config, data.settings].filter(isRecord)];
  const numbers = Object.entries(NUMBERS).flatMap(([field, names]) => {
    const number = Number(textAt(sources, names) ?? NaN);
    return Number.isFinite(number) ? [[field, number] as const] : [];
  });
  const role = roleOf(node, data);
  const read = {
    id,
    label: textAt(sources, ['label', 'name', 'title']) ?? undefined,
    systemPrompt: textAt(sources, PROMPTS) ?? undefined,
    model: textAt(sources, ['model', 'modelName', 'model_name', 'llm'])?.trim() || undefined,
    type: role ?? undefined,
    ...Object.fromEntries(numbers),
    ...toolsOf(sources),
  };
  return changed<BlueprintNode>({ ...withDrawnType(node, role, notes), id }, read);
}

/** What a front end draws a node or an edge as is no type of ours; it is kept under another name. */
function withDrawnType(part: Fields, type: string | null, notes: Set<string>): Fields {
  if (part.type === undefined || part.type === null || part.type === type) return part;
  notes.add(`“type”: ${JSON.stringify(part.type)} says how it is drawn: kept as “flowType”.`);
  return changed<Fields>({ ...part, flowType: part.type }, { type: undefined });
}

/** Only what says it is a critic: of all others their labels and edges decide. */
function roleOf(node: Fields, data: Fields): NodeRole | null {
  const said = [node.type, data.role, data.type, data.agentType, data.agent_type, data.nodeType, data.kind];
  const isSaid = (words: RegExp | null): boolean =>
    said.some((each) => typeof each === 'string' && words?.test(each) === true);
  return (
    Object.keys(SAID)
      .filter(isRole)
      .find((role) => isSaid(SAID[role])) ?? null
  );
}

/** What front ends call each role. Null: what they call so is any node that calls a model, whatever its role. */
const SAID: Readonly<Record<NodeRole, RegExp | null>> = { agent: null, critic: /critic|judge|review|evaluat|scor/i };

/** Tools as a list of names, as flags by name, or as flags of the node. */
function toolsOf(sources: readonly Fields[]): Pick<BlueprintNode, 'tools'> {
  const flags = sources.flatMap((source) => {
    const { tools } = source;
    if (Array.isArray(tools))
      return tools.map((tool) => [nameOfTool(tool), isRecord(tool) ? (tool.enabled ?? true) : true]);
    return [...Object.entries(source), ...(isRecord(tools) ? Object.entries(tools) : [])];
  });
  const isOn = (pattern: RegExp): boolean =>
    flags.some(([name, value]) => typeof name === 'string' && pattern.test(name) && isYes(value));
  const tools = { webSearch: isOn(/web.?search|^search$|tavily/i), pdfReader: isOn(/pdf/i) };
  return tools.webSearch || tools.pdfReader ? { tools: { ...ownTools(sources), ...tools } } : {};
}

function ownTools([node]: readonly Fields[]): Fields {
  return isRecord(node?.tools) ? node.tools : {};
}

function nameOfTool(tool: unknown): unknown {
  return isRecord(tool) ? textAt([tool], ['name', 'id', 'type']) : tool;
}

function isYes(value: unknown): boolean {
  return value === true || (isRecord(value) && value.enabled === true);
}

function edgeOf(edge: Fields, notes: Set<string>): BlueprintEdge | null {
  const [source, target] = [textAt([edge], ['source', 'from']), textAt([edge], ['target', 'to'])];
  if (source === null || target === null) return null;
  const { type } = edge;
  const isOurs = type === 'linear' || type === 'conditional';
  const data = isRecord(edge.data) ? edge.data : {};
  const condition = type === 'linear' ? null : conditionIn(edge, data, notes);
  const drawn = withDrawnType(edge, isOurs ? type : null, notes);
  return { ...drawn, source, target, ...(condition !== null && { type: 'conditional', condition }) };
}

function conditionIn(edge: Fields, data: Fields, notes: Set<string>): string | null {
  const text = conditionText(edge, data);
  if (text === null) return null;
  const ours = inOurWords(text);
  if (conditionFault(text) === null || conditionFault(ours) !== null) return text;
  notes.add(`The condition ${text} was read as ${ours}.`);
  return ours;
}

/** As it is said; a label is one where the edge is called conditional, or bears a critic's word. Null: it has none. */
function conditionText(edge: Fields, data: Fields): string | null {
  const said = textAt([edge, data], ['condition', 'expression', 'when']) ?? comparison(data.condition);
  if (said !== null) return said;
  const label = textAt([edge, data], ['label'])?.trim() ?? '';
  if (/^(approve|rework)$/i.test(label)) return label.toLowerCase();
  const isDeclared = [edge.type, data.type, data.edgeType].includes('conditional') || data.conditional === true;
  return isDeclared ? label : null;
}

/** A condition given in parts, such as `{field: "score", operator: ">=", value: 8}`. */
function comparison(condition: unknown): string | null {
  if (!isRecord(condition)) return null;
  const field = textAt([condition], ['field', 'variable', 'key', 'left']);
  const operator = textAt([condition], ['operator', 'op']);
  const value = condition.value ?? condition.right;
  return field === null || operator === null ? null : `${field} ${operator} ${JSON.stringify(value)}`;
}

/** Python and JavaScript as they are used in such places. */
function inOurWords(text: string): string {
  return text
    .replaceAll(/\band\b/g, '&&')
    .replaceAll(/\bor\b/g, '||')
    .replaceAll(/\bnot\s+/g, '!')
    .replaceAll(/([=!])==/g, '$1=')
    .replaceAll(/\bstate(?:\.|\[["'])(\w+)(?:["']\])?/g, '$1')
    .replaceAll(/\bcritic_?score\b/gi, 'score')
    .replaceAll(/\biteration_?count\b/gi, 'iteration')
    .replaceAll(/\broute_?decision\b/gi, 'route');
}

/** The first text, or number as text, that one of these fields holds; of an object its name. */
function textAt(sources: readonly Fields[], names: readonly string[]): string | null {
  for (const source of sources) {
    for (const name of names) {
      const value = source[name];
      if (typeof value === 'string' && value !== '') return value;
      if (typeof value === 'number') return String(value);
      if (isRecord(value) && name !== 'condition') return textAt([value], ['id', 'name', 'model']);
    }
  }
  return null;
}
