/** Who of a council is a critic (contract, "How a blueprint runs"). A node's prompt is never looked at. */
import type { SavedEdge, SavedNode } from '../generated/schemas.js';
import { conditionOrNull } from './condition.js';

/** Whether a node scores: its `type` says so; without one, a verdict as bare condition leaves it or its label names a critic. */
export function isCritic(node: SavedNode, edges: readonly SavedEdge[]): boolean {
  if (node.type !== undefined) return node.type === 'critic';
  return namesCritic(node.label) || edges.some((edge) => edge.source === node.id && isVerdict(edge));
}

/** The words a route can be. */
export const VERDICTS: readonly string[] = ['approve', 'rework'];

function isVerdict({ type, condition }: SavedEdge): boolean {
  if (type === 'linear' || condition === null) return false;
  const word = conditionOrNull(condition)?.word ?? null;
  return word !== null && VERDICTS.includes(word);
}

/** Whole words count, in any case; digits, signs and a capital inside a word (`codeReviewer`) end one. */
function namesCritic(label: string): boolean {
  const words = label
    .normalize('NFC')
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .split(/\P{L}+/u);
  return words.some((word) => CRITICS.has(word.toLowerCase()));
}

const CRITICS: ReadonlySet<string> = new Set([
  ...['critic', 'reviewer', 'evaluator', 'judge', 'scorer'],
  ...['kritiker', 'gutachter', 'bewerter', 'prüfer'],
]);
