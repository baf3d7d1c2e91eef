/**
 * The roles of a council (schemas/node-role.json): what each does, and which node has which. A node's prompt is not
 * considered.
 */
import type { BlueprintRoles, NodeRole, SavedEdge, SavedNode } from '../generated/schemas.js';
import type { ModelRequest } from '../models/port.js';
import { conditionOrNull } from '../graph/condition.js';

type Edge = Pick<SavedEdge, 'source' | 'type' | 'condition'>;

/** What the nodes of each role do; what they are told to do is in prompt.ts. */
export const ROLES: Readonly<Record<NodeRole, RoleTraits>> = {
  agent: { answer: 'draft', countsIteration: true },
  critic: { answer: 'critique', countsIteration: false },
};

interface RoleTraits {
  /** What it asks its model for: a text that becomes the draft, or a score with feedback. */
  readonly answer: ModelRequest['answer'];
  /** Whether what it writes counts as a draft of the run. */
  readonly countsIteration: boolean;
}

/**
 * The role of a node among these edges: its `type`; without one it is a critic when an edge with a bare verdict as its
 * condition leaves it, or when its label names a critic.
 */
export function roleAmong(edges: readonly Edge[]): (node: SavedNode) => NodeRole {
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

/** The values of a route decision. */
export const VERDICTS: readonly string[] = ['approve', 'rework'];

function isVerdict({ type, condition }: Edge): boolean {
  if (type === 'linear' || condition === null) return false;
  const word = conditionOrNull(condition)?.word ?? null;
  return word !== null && VERDICTS.includes(word);
}

/**
 * Whole words count, in any case, inflection and Unicode form; in German also as the last part of a compound. Words for
 * criticism itself count only alone: beside other words they may be what an agent works on.
 */
function namesCritic(label: string): boolean {
  const words = wordsOf(label);
  const [only = '', ...others] = words;
  return words.some((word) => CRITIC.test(word)) || (others.length === 0 && CRITICISM.test(only));
}

/** Splits at digits, signs and inner capitals (`codeReviewer`, `LLMJudge`). */
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
