/**
 * Imports blueprints from files: the service's own, and those of front ends with React Flow, whose nodes hold the agent
 * under `data`. Adds the fields of the service and keeps all other fields of a node or an edge.
 */
import type { BlueprintEdge, BlueprintNode, NodeRole } from '../../../generated/schemas.js';
import { conditionFault } from '../../record/drawn-graph.js';
import type { Draft } from './draft.js';
import { changed, isRecord, isRole, optionsIn } from './draft.js';

export interface Imported {
  readonly draft: Draft;
  /** What was converted or omitted, as sentences. */
  readonly notes: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields that may contain the council. */
const WRAPPERS = ['blueprint', 'graph', 'flow', 'data'];
/** Fields that the import reads, those that the service sets itself, and the explanation of an example. */
const KNOWN = [
  'name',
  'description',
  'title',
  'nodes',
  'edges',
  'approvals',
  'budget',
  'fallbacks',
  'entry',
  'god_mode',
  'model_options',
  'documents',
  'output_schema',
  'id',
  'version',
  'createdAt',
  'updatedAt',
  'warnings',
  'roles',
];

/** @param fallback the name if the file has none @throws {TypeError} or {SyntaxError} with the reason */
export function importBlueprint(text: string, fallback: string): Imported {
  const value: unknown = JSON.parse(text);
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const outer = isRecord(all[0]) ? all[0] : {};
  const council = [outer, ...WRAPPERS.map((name) => outer[name])].filter(isRecord).find(holdsNodes);
  if (council === undefined) throw new TypeError('This file contains no list of nodes.');
  const notes = new Set<string>();
  const dropped = Object.keys(council).filter((name) => !KNOWN.includes(name));
  if (dropped.length > 0) notes.add(`Omitted fields: ${dropped.join(', ')}.`);

  const listed = council.nodes.filter(isRecord);
  const marks = new Set(listed.filter(isMark).map((node) => textAt([node], ['id'])));
  if (marks.size > 0) notes.add(`Omitted nodes that are not agents: ${[...marks].join(', ')}.`);
  const nodes = listed.filter((node) => !isMark(node)).map((node, at) => nodeOf(node, at, notes));
  const edges = (Array.isArray(council.edges) ? council.edges : []).filter(isRecord).flatMap((edge) => {
    const read = edgeOf(edge, notes);
    if (read === null) notes.add('Omitted an edge without source and target.');
    return read === null || marks.has(read.source) || marks.has(read.target) ? [] : [read];
  });
  const name = textAt([council, outer], ['name', 'title']) ?? fallback;
  return { draft: { name, nodes, edges, ...optionsIn(council) }, notes: [...notes] };
}

function holdsNodes(value: Fields): value is Fields & { readonly nodes: readonly unknown[] } {
  return Array.isArray(value.nodes);
}

/** Whether a node marks the start or end of the graph and is not an agent. */
function isMark(node: Fields): boolean {
  const data = isRecord(node.data) ? node.data : {};
  const isNamedSo = /^_*(start|end|input|output)_*(node)?$/im.test(`${String(node.type)}\n${String(node.id)}`);
  return isNamedSo && textAt([node, data], PROMPTS) === null;
}

const PROMPTS = ['systemPrompt', 'system_prompt', 'prompt'];
const NUMBERS = {
  temperature: ['temperature'],
  maxOutputTokens: ['maxOutputTokens', 'max_tokens'],
} as const;

function nodeOf(node: Fields, at: number, notes: Set<string>): BlueprintNode {
  const id = textAt([node], ['id']) ?? `node-${at + 1}`;
  // A node of the service stays as it is.
  if (!isRecord(node.data) || typeof node.systemPrompt === 'string') return { ...node, id };
  const { data } = node;
  const sources = [node, data, ...[data.config].filter(isRecord)];
  const numbers = Object.entries(NUMBERS).flatMap(([field, names]) => {
    const number = Number(textAt(sources, names) ?? NaN);
    return Number.isFinite(number) ? [[field, number] as const] : [];
  });
  const role = roleOf(node, data);
  const read = {
    id,
    label: textAt(sources, ['label', 'name']) ?? undefined,
    systemPrompt: textAt(sources, PROMPTS) ?? undefined,
    model: textAt(sources, ['model']) ?? undefined,
    type: role ?? undefined,
    ...Object.fromEntries(numbers),
    ...toolsOf(sources),
  };
  return changed<BlueprintNode>({ ...withDrawnType(node, role, notes), id }, read);
}

/** Keeps the display type of a front end as `flowType`: it is not a type of the service. */
function withDrawnType(part: Fields, type: string | null, notes: Set<string>): Fields {
  if (part.type === undefined || part.type === null || part.type === type) return part;
  notes.add(`Kept the display type ${JSON.stringify(part.type)} as “flowType”.`);
  return changed<Fields>({ ...part, flowType: part.type }, { type: undefined });
}

/** The role of a node, or null if label and edges decide. */
function roleOf(node: Fields, data: Fields): NodeRole | null {
  const said = [node.type, data.role, data.type].filter((each) => typeof each === 'string').filter(isRole);
  // Front ends call any node an agent. With a label beside `data`, the file comes from this service.
  return said.find((role) => role !== 'agent' || typeof node.label === 'string') ?? null;
}

/** Tools from a list of names, from flags by name, or from flags of the node. */
function toolsOf(sources: readonly Fields[]): Pick<BlueprintNode, 'tools'> {
  const flags = sources.flatMap((source) => {
    const { tools } = source;
    if (Array.isArray(tools)) return tools.map((name): readonly [string, unknown] => [String(name), true]);
    return Object.entries({ ...source, ...(isRecord(tools) ? tools : {}) });
  });
  const isOn = (pattern: RegExp): boolean => flags.some(([name, value]) => pattern.test(name) && value === true);
  const tools = { webSearch: isOn(/web.?search/i), pdfReader: isOn(/pdf/i) };
  const own = sources[0]?.tools;
  return tools.webSearch || tools.pdfReader ? { tools: { ...(isRecord(own) && own), ...tools } } : {};
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
  const ours = converted(text);
  if (conditionFault(text) === null || conditionFault(ours) !== null) return text;
  notes.add(`Converted the condition ${text} to ${ours}.`);
  return ours;
}

/** The condition of an edge, or its label if that is a verdict or the edge is conditional, or null. */
function conditionText(edge: Fields, data: Fields): string | null {
  const said = textAt([edge, data], ['condition']);
  if (said !== null) return said;
  const label = textAt([edge, data], ['label'])?.trim() ?? '';
  if (/^(approve|rework)$/i.test(label)) return label.toLowerCase();
  return [edge.type, data.type].includes('conditional') ? label : null;
}

/** Converts conditions in Python or JavaScript. */
function converted(text: string): string {
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

/** The first text in these fields: numbers as text, objects by their name. */
function textAt(sources: readonly Fields[], names: readonly string[]): string | null {
  for (const source of sources) {
    for (const name of names) {
      const value = source[name];
      if (typeof value === 'string' && value !== '') return value;
      if (typeof value === 'number') return String(value);
      if (isRecord(value)) return textAt([value], ['name']);
    }
  }
  return null;
}
