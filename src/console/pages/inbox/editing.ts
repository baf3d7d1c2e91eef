/** Edits of the states of paused runs: one is open, and each is kept until it is recorded. */
import { computed, signal } from '@preact/signals';
import { InvalidError } from '../../../client/errors.js';
import type { GodModeState, StateOverride } from '../../../generated/schemas.js';
import type { Outcome } from '../../shell/decisions.js';
import { pauseKey } from '../../shell/pending-approvals.js';
import type { Edit, Faults, LabelOf } from './edit.js';
import { editOf, faultsOf, invalidNumbers, overrideOf } from './edit.js';

/** What is edited. */
export interface EditSubject {
  readonly state: GodModeState;
  readonly topic: string;
  readonly labelOf: LabelOf;
}

/** An open edit. */
export interface OpenEdit extends EditSubject {
  readonly key: string;
  /** The fields before the edit. */
  readonly shown: Edit;
  readonly typed: Edit;
  readonly comment: string;
  readonly faults: Faults;
}

export interface SentEdit {
  readonly edit: OpenEdit;
  readonly change: StateOverride;
  readonly comment: string | undefined;
}

export interface EditingDeps {
  readonly send: (sent: SentEdit) => Promise<Outcome>;
  /** How another user decided the pause, as a sentence, or null. */
  readonly outcomeOf: (key: string, topic: string) => string | null;
}

export class Editing {
  readonly #deps: EditingDeps;
  readonly #kept = new Map<string, OpenEdit>();

  /** The open edit, or null. */
  readonly edit = signal<OpenEdit | null>(null);

  /** How another user decided the edited pause meanwhile, or null. */
  readonly outcome = computed<string | null>(() => {
    const { value: edit } = this.edit;
    return edit === null ? null : this.#deps.outcomeOf(edit.key, edit.topic);
  });

  constructor(deps: EditingDeps) {
    this.#deps = deps;
  }

  /** Opens an edit of a pause; one that was closed or undone has its text again. */
  open(subject: EditSubject): void {
    const { run_id: runId, seq } = subject.state;
    const key = pauseKey({ run_id: runId, expected_seq: seq });
    const shown = editOf(subject.state);
    this.edit.value = this.#kept.get(key) ?? { ...subject, key, shown, typed: shown, comment: '', faults: {} };
  }

  type(change: Partial<Edit>, comment = this.edit.value?.comment ?? ''): void {
    const { value: edit } = this.edit;
    if (edit !== null) this.#show({ ...edit, comment, typed: { ...edit.typed, ...change } });
  }

  /** Closes the edit and keeps its text while the pause is open. */
  close(): void {
    const { value: edit } = this.edit;
    if (edit !== null && this.outcome.value !== null) this.#kept.delete(edit.key);
    this.edit.value = null;
  }

  /** Sends the changed fields. If the service refuses them, the edit opens again with the errors at its fields. */
  async send(): Promise<void> {
    const { value: edit } = this.edit;
    if (edit === null) return;
    const faults = invalidNumbers(edit.typed);
    if (Object.keys(faults).length > 0) return this.#show({ ...edit, faults });
    const change = overrideOf(edit.shown, edit.typed);
    this.edit.value = null;
    const outcome = await this.#deps.send({ edit, change, comment: edit.comment.trim() || undefined });
    if (outcome.kind === 'recorded' || outcome.kind === 'late') this.#kept.delete(edit.key);
    if (outcome.kind !== 'refused' || !(outcome.error instanceof InvalidError)) return;
    const refused = { ...edit, faults: faultsOf(outcome.error.errors, change) };
    this.#kept.set(edit.key, refused);
    if (this.edit.peek() === null) this.edit.value = refused;
  }

  #show(edit: OpenEdit): void {
    this.#kept.set(edit.key, edit);
    this.edit.value = edit;
  }
}
