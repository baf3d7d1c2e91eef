/** Warnings about ways by which text of documents can leave the service in a web search. They do not prevent a run. */
import { edgesBySource, reachableFrom } from '../graph/traversal.js';
import type { CouncilGraph, GraphIssue } from './validate.js';
import { quotedId, warning } from './validate.js';

/**
 * One warning for each node that searches the web and knows text of documents: it reads documents itself, or a path leads to it
 * from a node that does, whose draft or feedback it gets. A document or a web page may instruct a model, which cannot tell its
 * instructions from yours, to put what it knows into a search. Members use the tools of their node.
 */
export function waysOut({ nodes, edges }: CouncilGraph): readonly GraphIssue[] {
  const readers = nodes.filter(({ tools }) => tools.pdfReader);
  const outgoing = edgesBySource(edges);
  const reachedBy = readers.map(({ id }) => ({ id, reached: reachableFrom(id, outgoing) }));
  return nodes.flatMap(({ id, tools }, index) => {
    if (!tools.webSearch) return [];
    const source = tools.pdfReader ? id : reachedBy.find(({ reached }) => reached.has(id))?.id;
    if (source === undefined) return [];
    const knows = source === id ? 'reads documents' : `gets what node ${quotedId(source)} writes from documents`;
    const message = `Node ${quotedId(id)} searches the web and ${knows}: text of documents may leave the service in a search`;
    return [warning(`nodes[${index}].tools`, message, id)];
  });
}
