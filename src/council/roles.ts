/** Who of a council is a critic (contract, "How a blueprint runs"). A node's prompt is never looked at. */
import type { BlueprintRoles, GraphNode, SavedEdge, SavedNode } from '../generated/schemas.js';
import { conditionOrNull } from '../graph/condition.js';

type Role = GraphNode['role'];
type Edge = Pick<SavedEdge, 'source' | 'type' | 'condition'>;

/**
 * Tells the role of a node among these edges: its `type` says it; without one it is a critic when a verdict as bare
 * condition leaves it, or its label names one.
 */
export function roleAmong(edges: readonly Edge[]): (node: SavedNode) => Role {
  const judging = new Set(edges.filter(isVerdict).map(({ source }) => source));
  return ({ id, type, label }) => type ?? (judging.has(id) || namesCritic(label) ? 'critic' : 'agent');
}

/** The role of each node, in their order. */
export function rolesOf(council: {
  readonly nodes: readonly SavedNode[];
  readonly edges: readonly Edge[];
}): BlueprintRoles {
  const roleOf = roleAmong(council.edges);
  return council.nodes.map((node) => ({ node: node.id, role: roleOf(node) }));
}

/** The words a route can be. */
export const VERDICTS: readonly string[] = ['approve', 'rework'];

function isVerdict({ type, condition }: Edge): boolean {
  if (type === 'linear' || condition === null) return false;
  const word = conditionOrNull(condition)?.word ?? null;
  return word !== null && VERDICTS.includes(word);
}

/**
 * Whole words count, in any case and inflection, however their letters are composed; of German words the last part of
 * a compound, too. The name of what a critic does counts alone: beside other words it is as well what others work on.
 */
function namesCritic(label: string): boolean {
  const words = wordsOf(label);
  const [only = '', ...others] = words;
  return words.some((word) => CRITIC.test(word)) || (others.length === 0 && CRITICISM.test(only));
}

/** Digits, signs and a capital inside a word (`codeReviewer`, `LLMJudge`) end one. */
function wordsOf(label: string): readonly string[] {
  return label
    .normalize('NFKC')
    .replaceAll(/(\p{Ll})(\p{Lu})|(\p{Lu})(\p{Lu}\p{Ll}{3})/gu, '$1$3 $2$4')
    .split(/\P{L}+/u)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase());
}

/** English nouns, which German inflects its own way; German ones. */
const CRITIC =
  /^(?:(?:critic|judge)s?|(?:reviewer|scorer)(?:s|n|in|innen)?|evaluator(?:s|en|in|innen)?|\p{L}*(?:kritiker|gutachter|bewerter|pr(?:ü|ue)fer)(?:s|n|in|innen)?)$/u;
const CRITICISM = /^(?:criticisms?|critiques?|\p{L}*kritik(?:en)?)$/u;
