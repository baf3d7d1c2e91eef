/** The drafts, feedback and scores of a run, each with an id, found by the step or pause they come from. */
import type { GenealogyDraft, GenealogyFeedback, GenealogyScore } from '../generated/schemas.js';
import type { Branch } from '../run/branch.js';
import { firstLine, digest } from './digest.js';
import { beginsWith, elementAt } from '../system/element.js';

type Sha256 = (text: string) => string;

/** The event that a draft, feedback or score came with. */
export interface Moment {
  readonly seq: number;
  readonly at: string;
}

export type NewDraft = Pick<GenealogyDraft, 'kind' | 'node' | 'step' | 'iteration' | 'parents'> &
  Partial<Pick<GenealogyDraft, 'attempt' | 'model' | 'prompt_hash' | 'tools'>> & { readonly text: string };

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
  /** Sources that were asked for before their feedback was added. */
  readonly #unknown = new Set<string>();
  /** Cache of the last feedback list; the next usually extends it by one entry. */
  #lastGiven = nothingGiven();

  constructor(sha256: Sha256) {
    this.#sha256 = sha256;
  }

  /** Id of a branch's draft; null when it has none. */
  draftOf({ draft, draftFrom }: Pick<Branch, 'draft' | 'draftFrom'>): string | null {
    return draft === null || draftFrom === null ? null : (this.#draftsFrom.get(draftFrom)?.id ?? null);
  }

  /** Whether the draft of a branch is there as it reads. */
  holds({ draft, draftFrom }: Branch): boolean {
    if (draft === null || draftFrom === null) return false;
    return this.#draftsFrom.get(draftFrom)?.hash === this.#sha256(draft);
  }

  /** Ids of a branch's feedback, oldest first. */
  feedbackOf({ feedback }: Pick<Branch, 'feedback'>): string[] {
    const { of, ids, list } = this.#lastGiven;
    if (feedback === of) return list;
    const goesOn = beginsWith(feedback, of);
    const known = goesOn ? ids : new Set<string>();
    const added: string[] = [];
    for (const { from } of goesOn ? feedback.slice(of.length) : feedback) {
      const source = sourceOf(from);
      const id = this.#feedbackFrom.get(source);
      if (id === undefined) this.#unknown.add(source);
      else if (!known.has(id)) added.push(id);
      if (id !== undefined) known.add(id);
    }
    this.#lastGiven = { of: feedback, ids: known, list: goesOn ? list.concat(added) : added };
    return this.#lastGiven.list;
  }

  /** @param from the step or pause that branches will know it by, null at the end of a run; returns its id */
  addDraft({ seq, at }: Moment, from: string | null, draft: NewDraft): string {
    const id = idAt('d', seq, this.drafts);
    const { attempt = null, model = null, prompt_hash = null, tools = [] } = draft;
    const { kind, parents, iteration, node, step } = draft;
    const { hash, characters, first_line } = digest(draft.text, this.#sha256);
    // Field by field: Node 20 is slow to spread objects of many fields.
    const added: GenealogyDraft = {
      id,
      seq,
      at,
      attempt,
      model,
      prompt_hash,
      tools,
      scores: [],
      kind,
      parents,
      iteration,
      node,
      step,
      hash,
      characters,
      first_line,
    };
    this.drafts.push(added);
    this.#draftsById.set(id, added);
    if (from !== null) this.#draftsFrom.set(from, added);
    return id;
  }

  /** @param from the step or pause that branches will know it by; returns its id */
  addFeedback({ seq, at }: Moment, from: string, { texts, tools = [], kind, node, draft }: NewFeedback): string {
    const id = idAt('f', seq, this.feedback);
    const { hash, characters } = digest(texts.join('\n'), this.#sha256);
    const first_line = firstLine(elementAt(texts, 0));
    this.feedback.push({ id, seq, at, tools, kind, node, draft, count: texts.length, hash, characters, first_line });
    const source = sourceOf(from);
    // The cached list may hold the source without its id, or with another.
    if (this.#feedbackFrom.has(source) || this.#unknown.has(source)) this.#lastGiven = nothingGiven();
    this.#feedbackFrom.set(source, id);
    return id;
  }

  /** Adds a score, also to the drafts it judges. */
  addScore(score: GenealogyScore): void {
    this.scores.push(score);
    const { seq, node, score: given } = score;
    if (given === null) return;
    for (const id of score.drafts) this.#draftsById.get(id)?.scores.push({ seq, node, score: given });
  }
}

/** A feedback list, and its ids. */
interface GivenFeedback {
  readonly of: Branch['feedback'];
  readonly ids: Set<string>;
  readonly list: string[];
}

function nothingGiven(): GivenFeedback {
  return { of: [], ids: new Set(), list: [] };
}

/** The ids that are not null, each once. */
export function distinct(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids.filter((id) => id !== null))];
}

/** A human's list of feedback counts as one: of its texts each is from the pause and its place in the list. */
export function sourceOf(from: string): string {
  const end = from.indexOf('.');
  return end === -1 ? from : from.slice(0, end);
}

/** @param others those of before, in the order of their events */
function idAt(letter: string, seq: number, others: readonly Pick<Moment, 'seq'>[]): string {
  const earlier = others.length - 1 - others.findLastIndex((each) => each.seq !== seq);
  return earlier === 0 ? `${letter}${seq}` : `${letter}${seq}.${earlier}`;
}
