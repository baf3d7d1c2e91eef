/** The roles of a council (schemas/node-role.json): their traits, and which node has which. */
import type { BlueprintRoles, NodeRole, SavedEdge, SavedNode } from '../generated/schemas.js';
import type { ModelRequest, PromptInput } from '../models/port.js';
import { enumerated } from './deliberation/anonymity.js';
import { conditionOrNull } from '../graph/condition.js';
import { MAX_FEEDBACK_CHARS, PASS_SCORE } from '../graph/limits.js';

type Edge = Pick<SavedEdge, 'source' | 'type' | 'condition'>;

const AGENT_RULE = 'Answer with the text of the draft alone, without tags, preface or remarks.';

const CRITIC_RULE =
  'Answer with one JSON object and nothing around it, no code fence: {"score": number, "feedback": string}. ' +
  `"score" is a number from 0 (useless) to 10 (could not be better); ${PASS_SCORE} or more approves the draft as it ` +
  `stands. "feedback" says in at most ${MAX_FEEDBACK_CHARS} characters what would raise the score.`;

const RANK_RULE =
  'Answer with one JSON object and nothing around it, no code fence: {"ranking": [string], "comment": string}. ' +
  '"ranking" lists the letter of each response exactly once, best first. "comment" says why in at most ' +
  `${MAX_FEEDBACK_CHARS} characters. Judge what the responses say, not their length, style or order.`;

const JUDGE_RULE =
  'Answer with one JSON object and nothing around it, no code fence: {"consensus": [string], "contradictions": ' +
  '[{"topic": string, "stances": [{"response": string, "stance": string}]}], "partial_coverage": [{"responses": ' +
  '[string], "point": string}], "unique_insights": [{"response": string, "insight": string}], "blind_spots": ' +
  '[string]}. "consensus" lists what the responses agree on, "contradictions" where they contradict each other, ' +
  '"partial_coverage" what some of them cover, "unique_insights" what one of them alone has seen, "blind_spots" what ' +
  'none of them covers. A list may be empty. "response" and "responses" hold letters alone; in all other texts, write ' +
  '"Response" before a letter.';

const FORMAT_RULE =
  'Answer with one JSON value and nothing around it, no code fence. It must be valid by the JSON Schema below. Take all ' +
  'of it from what you are given, and invent nothing.';

/** The traits of each role: a new role goes here. */
export const ROLES: Readonly<Record<NodeRole, RoleTraits>> = {
  agent: { answer: 'draft', countsIteration: true, rule: AGENT_RULE, task: writingTask },
  critic: { answer: 'critique', countsIteration: false, rule: CRITIC_RULE, task: scoringTask },
  panel: { answer: 'draft', countsIteration: true, rule: AGENT_RULE, task: writingTask },
  rank: { answer: 'ranking', countsIteration: false, rule: RANK_RULE, task: rankingTask },
  judge: { answer: 'analysis', countsIteration: false, rule: JUDGE_RULE, task: comparingTask },
  format: { answer: 'output', countsIteration: false, rule: FORMAT_RULE, task: formattingTask },
  // Its runs ask models, not the council itself.
  council: { answer: 'draft', countsIteration: true, rule: '', task: () => '' },
};

interface RoleTraits {
  /** The kind of answer that it asks its model for. Each kind has an executor in executors.ts. */
  readonly answer: ModelRequest['answer'];
  /** Whether its output counts as a draft of the run. */
  readonly countsIteration: boolean;
  /** The part of its prompt that describes the answer. */
  readonly rule: string;
  /** Its task, at the end of its prompt. */
  readonly task: (input: PromptInput) => string;
}

function writingTask(input: PromptInput): string {
  const { draft, feedback } = input;
  if (lettersShown(input).length > 0) return draftingTask(input);
  if (draft === null) return 'Write the draft.';
  return feedback.length === 0 ? 'Write the next draft.' : 'Write the next draft. The newest feedback stands last.';
}

/** After a panel: one draft from its answers. */
function draftingTask({ feedback, ranking, analysis }: PromptInput): string {
  return [
    'Write one draft from the responses: keep what is right in them, and decide where they differ.',
    ...(ranking === undefined ? [] : ['Reviewers ranked them: start from the best.']),
    ...(analysis === undefined ? [] : ['A judge compared them: use the analysis.']),
    'Mention neither responses nor their letters: readers of the draft do not see them.',
    ...(feedback.length === 0 ? [] : ['The newest feedback stands last.']),
  ].join(' ');
}

function scoringTask(input: PromptInput): string {
  return lettersShown(input).length === 0 ? 'Score the draft.' : 'Score the responses together, as one draft.';
}

function rankingTask(input: PromptInput): string {
  return `Rank the responses: ${enumerated(lettersShown(input))}.`;
}

function comparingTask(input: PromptInput): string {
  return `Compare the responses: ${enumerated(lettersShown(input))}.`;
}

function formattingTask(input: PromptInput): string {
  const what = lettersShown(input).length === 0 ? 'the draft' : 'the responses, as one draft,';
  return `Turn ${what} into JSON by the schema.`;
}

function lettersShown({ answers = [] }: PromptInput): readonly string[] {
  return answers.map(({ letter }) => letter);
}

/**
 * The role of a node: its `type`; without one it is a critic if it has an outgoing edge with a bare verdict as condition,
 * or a label that names a critic. Its prompt does not count.
 */
export function roleAmong(edges: readonly Edge[]): (node: SavedNode) => NodeRole {
  const judging = new Set(edges.filter(isVerdict).map(({ source }) => source));
  return ({ id, type, label }) => type ?? (judging.has(id) || namesCritic(label) ? 'critic' : 'agent');
}

/** The role of each node, in order. */
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
 * Matches whole words in any case, inflection and Unicode form; in German also the last part of a compound. Words for
 * criticism itself match only alone, because an agent may work on criticism.
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

/** English nouns, also with German endings; German nouns. */
const CRITIC =
  /^(?:(?:critic|judge)s?|(?:reviewer|scorer)(?:s|n|in|innen)?|evaluator(?:s|en|in|innen)?|\p{L}*(?:kritiker|gutachter|bewerter|pr(?:ü|ue)fer)(?:s|n|in|innen)?)$/u;
const CRITICISM = /^(?:criticisms?|critiques?|\p{L}*kritik(?:en)?)$/u;
