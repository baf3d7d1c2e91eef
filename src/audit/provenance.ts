/** The drafts, feedback and scores of a run, each with an id, indexed by their step or pause. */
import type { GenealogyDraft, GenealogyFeedback, GenealogyScore } from '../generated/schemas.js';
import type { Branch } from '../run/frontier/branch.js';
import { firstLine, digest } from './digest.js';
import { elementAt } from '../system/element.js';

type Sha256 = (text: string) => string;

/** The event of a draft, feedback or score. */
export interface EventRef {
  readonly seq: number;
  readonly at: string;
}

export type NewDraft = Pick<GenealogyDraft, 'kind' | 'node' | 'step' | 'iteration' | 'parents'> &
  Partial<Pick<GenealogyDraft, 'member' | 'attempt' | 'model' | 'prompt_hash' | 'tools'>> & { readonly text: string };

export type NewFeedback = Pick<GenealogyFeedback, 'kind' | 'node' | 'draft'> &
  Partial<Pick<GenealogyFeedback, 'tools'>> & { readonly texts: readonly string[] };

export class Provenance {
  readonly drafts: GenealogyDraft[] = [];
  readonly feedback: GenealogyFeedback[] = [];
  readonly scores: GenealogyScore[] = [];
  readonly #sha256: Sha256;
  readonly #draftsById = new Map<string, GenealogyDraft>();
  readonly #draftsFrom = new Map<string, GenealogyDraft>();
  readonly #feedbackFrom = new Map<string, string>();

  constructor(sha256: Sha256) {
    this.#sha256 = sha256;
  }

  /** Id of a branch's draft, or null if it has none. */
  draftOf({ draft, draftFrom }: Pick<Branch, 'draft' | 'draftFrom'>): string | null {
    return draft === null || draftFrom === null ? null : (this.#draftsFrom.get(draftFrom)?.id ?? null);
  }

  /** Id of the answer of a panel's member, or null if it was not added. */
  answerOf(panelStep: number, { member }: { readonly member: string }): string | null {
    return this.#draftsFrom.get(answerFrom(panelStep, member))?.id ?? null;
  }

  /** Whether the draft of a branch has been added with the same text. */
  holds({ draft, draftFrom }: Branch): boolean {
    if (draft === null || draftFrom === null) return false;
    return this.#draftsFrom.get(draftFrom)?.hash === this.#sha256(draft);
  }

  /** Ids of a branch's feedback, oldest first. */
  feedbackOf({ feedback }: Pick<Branch, 'feedback'>): string[] {
    return distinct(feedback.map(({ from }) => this.#feedbackFrom.get(sourceOf(from)) ?? null));
  }

  /** @param from the step or pause by which branches refer to it, or null at the end of a run. Returns its id */
  addDraft({ seq, at }: EventRef, from: string | null, { text, ...draft }: NewDraft): string {
    const id = idAt('d', seq, this.drafts);
    const unknown = { attempt: null, model: null, prompt_hash: null, tools: [] };
    const added: GenealogyDraft = { id, seq, at, ...unknown, scores: [], ...draft, ...digest(text, this.#sha256) };
    this.drafts.push(added);
    this.#draftsById.set(id, added);
    if (from !== null) this.#draftsFrom.set(from, added);
    return id;
  }

  /** @param from the step or pause by which branches refer to it. Returns its id */
  addFeedback({ seq, at }: EventRef, from: string, { texts, ...feedback }: NewFeedback): string {
    const id = idAt('f', seq, this.feedback);
    const { hash, characters } = digest(texts.join('\n'), this.#sha256);
    const first_line = firstLine(elementAt(texts, 0));
    this.feedback.push({ id, seq, at, tools: [], ...feedback, count: texts.length, hash, characters, first_line });
    this.#feedbackFrom.set(sourceOf(from), id);
    return id;
  }

  /** Adds a score, also to the drafts it judges; that of a jury's member only to the scores. */
  addScore(score: GenealogyScore): void {
    this.scores.push(score);
    const { seq, node, member, score: given } = score;
    if (given === null || member !== undefined) return;
    for (const id of score.drafts) this.#draftsById.get(id)?.scores.push({ seq, node, score: given });
  }
}

/** The source of the answer of a panel's member. */
export function answerFrom(panelStep: number, member: string): string {
  return `${panelStep}/${member}`;
}

/** The ids that are not null, each once. */
export function distinct(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))];
}

/** The source without the place in a list: a human's list of feedback counts as one. */
export function sourceOf(from: string): string {
  const end = from.indexOf('.');
  return end === -1 ? from : from.slice(0, end);
}

/** @param others the earlier ones, in the order of their events */
function idAt(letter: string, seq: number, others: readonly Pick<EventRef, 'seq'>[]): string {
  const earlier = others.length - 1 - others.findLastIndex((each) => each.seq !== seq);
  return earlier === 0 ? `${letter}${seq}` : `${letter}${seq}.${earlier}`;
}
