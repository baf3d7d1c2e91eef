/** How large a saved council may be. */
import type { BlueprintRecord } from '../generated/schemas.js';
import type { Council } from './record.js';
import { councilOf } from './record.js';

/**
 * Largest blueprint in bytes (contract, section 2), as it is sent. Whatever its defaults add must fit one append: at most
 * 155 KiB of labels, 60 KiB of other fields, and the warnings.
 */
export const MAX_BLUEPRINT_BYTES = 256 * 1024;

/** Longest record that surely fits its append of 512 KiB, in bytes of its JSON text. */
const MAX_RECORD_BYTES = 500 * 1024;

/** Whether a record might not fit its append. */
export function isTooLong(record: BlueprintRecord): boolean {
  return new TextEncoder().encode(JSON.stringify(record)).length > MAX_RECORD_BYTES;
}

/**
 * Bytes of the shortest JSON text a client could send for a council: what holds its default counts nothing, so that
 * whatever fits a request can be kept, and many changes can make no more of it than one.
 */
export function sentBytes({ name, nodes, edges }: Council): number {
  const plain = councilOf({
    name,
    nodes: nodes.map(({ id }) => ({ id })),
    edges: edges.map(({ source, target }) => ({ source, target })),
  });
  const sent = {
    name,
    nodes: nodes.map((node, at) => ({ id: node.id, ...beyond(node, plain.nodes[at]) })),
    // None is what there is by default.
    edges: edges.length === 0 ? undefined : edges.map((edge, at) => sentEdge(edge, plain.edges[at])),
  };
  return new TextEncoder().encode(JSON.stringify(sent)).length;
}

function sentEdge(edge: Council['edges'][number], usual: object | undefined): object {
  return { source: edge.source, target: edge.target, ...beyond(edge, usual) };
}

/** The fields that are not as they would be by themselves. */
function beyond(value: object, usual: object = {}): object {
  const fields = Object.entries(value).flatMap(([key, each]: [string, unknown]): (readonly [string, unknown])[] => {
    const plain: unknown = Object.hasOwn(usual, key) ? Reflect.get(usual, key) : undefined;
    if (each === plain) return [];
    if (!isObject(each) || !isObject(plain)) return [[key, each]];
    const rest = beyond(each, plain);
    return Object.keys(rest).length === 0 ? [] : [[key, rest]];
  });
  return Object.fromEntries<unknown>(fields);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
