import type { Brief } from './port.js';
import {
  CRITIC_SIGNATURE,
  hasSection,
  hasTitle,
  requestFor,
  SECTIONS,
  SUMMARY,
  TITLE_REQUEST,
} from './offline-parts.js';
import { excerpt, viewTopic, type TopicView } from './offline-topic.js';

/**
 * Writes the next draft of a brief by fixed rules. Without a draft it writes a title and the section "In short". A draft
 * there is, whoever wrote it, is kept: what the offline critic asked for is added, other feedback is listed in a section
 * of its own, and the last line says who signed it. Asked again with nothing new it only signs, so drafts do not grow;
 * joined drafts that repeat each other lose the repetitions, and at most 16,000 UTF-16 units are kept of any draft.
 * What tools have found, if they were used, is listed in a section of its own.
 */
export function draftOffline(brief: Brief, found: readonly string[] = []): string {
  const topic = viewTopic(brief.topic);
  const kept = brief.draft === null ? '' : shortened(withoutSignature(brief.draft));
  const body =
    kept === '' ? `# ${topic.title}\n\n${section(SUMMARY.heading, SUMMARY.write(topic.about, topic.terms))}` : kept;
  const [told, list] = found.length === 0 ? [body, ''] : [withoutSection(body, LOOKED_UP), lookedUpSection(found)];
  return [takeUp(brief.feedback, told, topic), list, signature(brief)].filter((block) => block !== '').join('\n\n');
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

function signature({ label, systemPrompt }: Brief): string {
  const told = systemPrompt.trim() === '' ? '' : `, told "${excerpt(systemPrompt, 50)}"`;
  return `${SIGNED_BY}${excerpt(label, 40)}${told}. No language model was asked.*`;
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

/** Repeated paragraphs go first, and only from long drafts: a short one may repeat itself on purpose. */
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

/** Kept of a draft, in UTF-16 units: at six bytes each as JSON, with all sections, still below the limit of a draft. */
const KEPT_CHARS = 16_000;
