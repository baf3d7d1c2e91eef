/**
 * Prompts as versions before 28 November 2026 rendered them, so that their recorded hashes can be verified. Those versions
 * hid the names of all models of a panel from every reader, wherever they stood in answers, feedback and an analysis.
 */
import { withTexts } from '../../council/deliberation/analysis-answer.js';
import type { MaskedText } from '../../council/deliberation/anonymity.js';
import { MASK, WORD_SIGN, escaped } from '../../council/deliberation/anonymity.js';
import type { RenderedPrompt } from '../../council/prompt.js';
import { renderPrompt } from '../../council/prompt.js';
import { panelsShown } from '../panels/answers-shown.js';
import type { PanelAnswers } from '../panels/deliberation.js';
import { answersInOrder } from '../panels/deliberation.js';
import type { FrontierNode, RunState } from '../state.js';
import { promptInputFor } from './node-start.js';

/** A prompt, and the names that it hides in answers. */
interface EarlierPrompt {
  readonly rendered: RenderedPrompt;
  readonly masked: readonly string[];
}

/** The prompts that earlier versions may have sent for a started attempt. The record does not say which of them did. */
export function earlierPrompts(run: RunState, at: FrontierNode): readonly EarlierPrompt[] {
  const panels = panelsShown(run.plan, { ...at, member: at.seat?.member ?? null });
  const names = namesToMask(panels.flatMap((panel) => modelsOf(run, panel)));
  const hide = (text: string): string => maskNames(text, names).text;
  const { draft, answers, analysis, feedback, ...input } = promptInputFor(run, at);
  const texts = answers === undefined ? [draft ?? ''] : answersInOrder(panels, at.orderShown).map(({ text }) => text);
  const rendered = renderPrompt({
    ...input,
    draft: draft === null ? null : hide(draft),
    ...(answers !== undefined && {
      answers: answers.map((each, index) => ({ ...each, text: hide(texts[index] ?? '') })),
    }),
    ...(analysis !== undefined && { analysis: withTexts(analysis, hide) }),
    feedback: feedback.map(hide),
  });
  const masked = [...new Set(texts.flatMap((text) => maskNames(text, names).masked))].toSorted();
  // The first versions with panels put no line "Response A:" above an answer.
  const unnamed = { ...rendered, prompt: rendered.prompt.replace(/^Response [A-Z]:\n(?=<response letter=)/gm, '') };
  return [rendered, unnamed].map((each) => ({ rendered: each, masked }));
}

/** The names of the models that a panel's members were to ask or have asked. */
function modelsOf({ plan }: RunState, { node, answers }: PanelAnswers): readonly string[] {
  const { members = [], model, fallbacks = [] } = plan.node(node);
  const own = members.flatMap((member) => [member.model, ...(member.fallbacks ?? [])]);
  return [model, ...fallbacks, ...own, ...answers.map((each) => each.model)].filter(
    (name): name is string => name !== undefined && name !== null,
  );
}

/**
 * The names by which an answer could name its model: of each model its full name, its provider, its name, the last part of
 * a name with slashes, and the words of model families in it. Each once, in lower case, the longest first.
 *
 * @param models full names as `provider/model`
 */
function namesToMask(models: readonly string[]): string[] {
  const names = models.flatMap((model) => {
    const full = model.toLowerCase();
    const [provider = '', ...path] = full.split('/');
    const families = FAMILIES.filter(({ inName }) => full.includes(inName)).flatMap(({ words }) => words);
    return [full, provider, path.join('/'), path.at(-1) ?? '', ...families];
  });
  const distinct = [...new Set(names)].filter((name) => /[\p{L}\p{N}]/u.test(name));
  return distinct.toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1));
}

/** Model families: the part of a model's name, and the words by which a model names itself. */
const FAMILIES: readonly { readonly inName: string; readonly words: readonly string[] }[] = [
  { inName: 'gpt', words: ['chatgpt', 'gpt'] },
  ...['claude', 'gemini', 'gemma', 'llama', 'mistral', 'mixtral', 'qwen', 'deepseek', 'grok', 'kimi', 'glm'].map(
    (word) => ({ inName: word, words: [word] }),
  ),
];

const FAMILY_WORDS: ReadonlySet<string> = new Set(FAMILIES.flatMap(({ words }) => words));

/**
 * Replaces each name by `[model]` where it stands as a word, in any case. A space, dot, hyphen or underscore of a name
 * matches each of these. The word of a family is replaced with the version attached to it, such as `GPT-5.1`.
 *
 * @param names as namesToMask returns them
 */
function maskNames(text: string, names: readonly string[]): MaskedText {
  if (names.length === 0) return { text, masked: [] };
  const found = new Set<number>();
  const masked = text.replace(patternOf(names), (_, ...groups: readonly unknown[]) => {
    found.add(groups.findIndex((group) => group !== undefined));
    return MASK;
  });
  return { text: masked, masked: names.filter((_, index) => found.has(index)) };
}

/**
 * Matches one of the names and captures it in a group of its own. Linear: a name has a fixed length, and what follows the
 * word of a family cannot fail.
 */
function patternOf(names: readonly string[]): RegExp {
  const words = names.map((name) => {
    const letters = name.split(new RegExp(SEPARATOR, 'v')).map(escaped).join(SEPARATOR);
    const end = FAMILY_WORDS.has(name) ? VERSION : `(?!${WORD_SIGN})`;
    return `(${letters}${end})`;
  });
  return new RegExp(`(?<!${WORD_SIGN})(?:${words.join('|')})`, 'giv');
}

const SEPARATOR = String.raw`[\-_. ]`;

/** The end of a family's word, then a version. */
const VERSION = String.raw`(?![\p{Script=Latin}_])(?:\p{N}[\p{L}\p{N}]*)?(?:[\-.][\p{L}\p{N}]+)*`;
