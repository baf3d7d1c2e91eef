/** Rules of a blueprint that its schema cannot tell, for whoever reads one from outside. */
import { isBlueprintId, repeatedNode } from '../blueprint/record.js';
import { MAX_BLUEPRINT_BYTES } from '../blueprint/size.js';
import type { BlueprintCreate, BlueprintUpdate, FieldError } from '../generated/schemas.js';
import { brokenRules } from './problems.js';

/** Largest body of a blueprint in bytes, and its deepest nesting: a record must leave room in its event. */
export const BODY_LIMITS = { maxBytes: MAX_BLUEPRINT_BYTES, maxDepth: 64 };

/** Node ids that mean something else on the channel: its `node_active` names `done` once a run has ended. */
const RESERVED_NODES: ReadonlySet<string> = new Set(['done']);

/** Refuses reserved ids, of nodes too, and node ids that come twice. @throws {RequestRefused} 422 */
export function assertRules({ id, nodes = [] }: Partial<BlueprintCreate> & BlueprintUpdate): void {
  const errors: FieldError[] = [];
  if (id !== undefined && !isBlueprintId(id)) {
    errors.push({ loc: ['body', 'id'], msg: `The id "${id}" is reserved`, type: 'reserved' });
  }
  const reserved = nodes.findIndex((node) => RESERVED_NODES.has(node.id));
  if (reserved >= 0) {
    const msg = `The id "${nodes[reserved]?.id}" is reserved: it tells that a run has ended`;
    errors.push({ loc: ['body', 'nodes', reserved, 'id'], msg, type: 'reserved' });
  }
  const repeated = repeatedNode(nodes);
  if (repeated >= 0) {
    errors.push({ loc: ['body', 'nodes', repeated, 'id'], msg: 'An earlier node has this id', type: 'duplicate' });
  }
  if (errors.length > 0) throw brokenRules(errors);
}
