import type { PromptInput } from '../port.js';
import { CRITIC_SIGNATURE, SECTIONS, SUMMARY, TITLE_REQUEST, hasSection, hasTitle, requestFor } from './critic.js';

/**
 * Writes the next draft for a prompt input by fixed rules. Without a draft it writes a title and the section "In
 * short". An existing draft, whoever wrote it, is kept: what the offline critic asked for is added, other feedback is
 * listed in a section of its own, and the last line names the author. Without new feedback only the signature changes,
 * so drafts do not grow; joined drafts that repeat each other lose the repetitions, and at most 16,000 UTF-16 units are
 * kept of any draft. Results of tools, if they were used, are listed in a section of their own.
 */
export function draftOffline(input: PromptInput, found: readonly string[] = []): string {
  const topic = viewTopic(input.topic);
  const kept = input.draft === null ? '' : shortened(withoutSignature(input.draft));
  const body =
    kept === '' ? `# ${topic.title}\n\n${section(SUMMARY.heading, SUMMARY.write(topic.about, topic.terms))}` : kept;
  const [text, list] = found.length === 0 ? [body, ''] : [withoutSection(body, LOOKED_UP), lookedUpSection(found)];
  return [takeUp(input.feedback, text, topic), list, signature(input)].filter((block) => block !== '').join('\n\n');
}

function takeUp(feedback: readonly string[], body: string, topic: TopicView): string {
  const asked = feedback.filter((text) => text.startsWith(CRITIC_SIGNATURE)).join('\n');
  const others = feedback.filter((text) => !text.startsWith(CRITIC_SIGNATURE) && text.trim() !== '');
  const rest = withoutSection(body, TAKEN_UP);
  const added = SECTIONS.filter((part) => asked.includes(requestFor(part)) && !hasSection(rest, part));
  return [
    ...(asked.includes(TITLE_REQUEST) && !hasTitle(rest) ? [`# ${topic.title}`] : []),
    rest,
    ...added.map((part) => section(part.heading, part.write(topic.about, topic.terms))),
    ...(others.length === 0
      ? []
      : [
          section(
            TAKEN_UP,
            others
              .slice(-3)
              .map((text) => `- ${excerpt(text, 120)}`)
              .join('\n'),
          ),
        ]),
  ]
    .filter((block) => block !== '')
    .join('\n\n');
}

function lookedUpSection(found: readonly string[]): string {
  return section(LOOKED_UP, `Quoted by the offline model, which has not understood it:\n\n${found.join('\n')}`);
}

function section(heading: string, text: string): string {
  return `## ${heading}\n\n${text}`;
}

function signature({ label, systemPrompt }: PromptInput): string {
  const instructions = systemPrompt.trim() === '' ? '' : `, told "${excerpt(systemPrompt, 50)}"`;
  return `${SIGNED_BY}${excerpt(label, 40)}${instructions}. No language model was asked.*`;
}

function withoutSignature(draft: string): string {
  const lines = draft.toWellFormed().split('\n');
  return tidy(lines.filter((line) => !line.startsWith(SIGNED_BY)).join('\n'));
}

function withoutSection(body: string, heading: string): string {
  if (!body.includes(`## ${heading}`)) return body;
  let inside = false;
  const lines = body.split('\n').filter((line) => {
    if (line.startsWith('#')) inside = line === `## ${heading}`;
    return !inside;
  });
  return tidy(lines.join('\n'));
}

/** Removes repeated paragraphs first, and only from long drafts: a short one may repeat itself on purpose. */
function shortened(draft: string): string {
  if (draft.length <= REPEATING_CHARS) return draft;
  const distinct = [...new Set(draft.split('\n\n'))].join('\n\n');
  if (distinct.length <= KEPT_CHARS) return distinct;
  return `${distinct.slice(0, KEPT_CHARS).toWellFormed().trimEnd()}\n\n${CUT}`;
}

/** At most one empty line between paragraphs, none around the text. The indent of a first line stays. */
function tidy(text: string): string {
  return text
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '')
    .trimEnd();
}

const SIGNED_BY = '*Written by the offline model as ';
const TAKEN_UP = 'Feedback taken up';
const LOOKED_UP = 'Looked up';
const CUT = '[The offline model has cut the rest.]';

/** From this length, in UTF-16 units, repeated paragraphs are dropped: joined drafts would double each round. */
const REPEATING_CHARS = 4000;

/** Most UTF-16 units kept of a draft: at six bytes each as JSON, with all sections, below the limit of a draft. */
const KEPT_CHARS = 16_000;

/** A topic prepared for use in running text: an excerpt and leading words. Each text is one well-formed line. */
interface TopicView {
  readonly title: string;
  /** The topic in quotes, or a substitute when it has no visible characters. */
  readonly about: string;
  /** Up to three of its words in their order; the title when it has none, empty when nothing is visible. */
  readonly terms: readonly string[];
}

/** Prepares a topic of any length and language. */
function viewTopic(topic: string): TopicView {
  const line = oneLine(topic);
  if (!VISIBLE.test(line)) return { title: 'A topic without words', about: 'a text without words', terms: [] };
  const title = excerpt(line, 60);
  const words = new Set(line.match(WORDS)?.filter((word) => !COMMON.has(word.toLowerCase())));
  const longest = [...words].sort((a, b) => b.length - a.length).slice(0, 3);
  const terms = [...words].filter((word) => longest.includes(word)).map((word) => excerpt(word, 24));
  return { title, about: `"${title}"`, terms: terms.length === 0 ? [title] : terms };
}

/** A text on one line, cut to a number of code points; what was cut shows as an ellipsis. */
export function excerpt(text: string, codePoints: number): string {
  // At most two UTF-16 units per code point, and one code point more to see whether something is cut.
  const points = [...oneLine(text).slice(0, 2 * codePoints + 2)];
  if (points.length <= codePoints) return points.join('');
  return `${points
    .slice(0, codePoints - 1)
    .join('')
    .trimEnd()}…`;
}

function oneLine(text: string): string {
  return text.toWellFormed().replace(BLANKS, ' ').trim();
}

const BLANKS = /[\p{Z}\p{Cc}]+/gu;
/** Anything but spaces, control and format characters. */
const VISIBLE = /[^\p{Z}\p{Cc}\p{Cf}]/u;
const WORDS = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu;

/** Stop words. English only: of other languages the longest words are taken. */
const COMMON: ReadonlySet<string> = new Set(
  (
    'a about an and any are as at be because been between but by can could did do does explain for from had has have ' +
    'how if in instead into is it its less more most no not of on or our please should so some than that the their ' +
    'them then there these they this those through to until was we were what when where whether which while who why ' +
    'will with within without would write you your'
  ).split(' '),
);
