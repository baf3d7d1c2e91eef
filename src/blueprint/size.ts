/** How large a saved council may be. */
import type { Council } from './record.js';
import { councilOf } from './record.js';

/** Largest blueprint in bytes (contract, section 2). Two records of it, defaults filled in, must not fill an append. */
export const MAX_BLUEPRINT_BYTES = 256 * 1024;

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
    edges: edges.map((edge, at) => ({ source: edge.source, target: edge.target, ...beyond(edge, plain.edges[at]) })),
  };
  return new TextEncoder().encode(JSON.stringify(sent)).length;
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
