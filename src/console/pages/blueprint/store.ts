/** A blueprint in the editor: the saved version, the current draft and its findings. */
import { batch, computed, signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';
import type { TaggedBlueprint } from '../../../client/blueprints.js';
import { InvalidError, NotFoundError, PreconditionFailedError } from '../../../client/errors.js';
import type { BlueprintCreate } from '../../../generated/schemas.js';
import type { Draft, NodeOrEdge } from './draft.js';
import { bodyOf, draftOf, updateOf } from './draft.js';
import { changesBetween } from './changes.js';
import type { Answer } from './findings.js';
import { NO_ANSWER, checked, findingsOf, refused, rolesOf } from './findings.js';
import { idsFrom, isIdRefused } from './new-id.js';

export interface EditorDeps {
  readonly council: Pick<CouncilClient, 'blueprints'>;
  /** Calls `act` later. @returns cancels the call */
  readonly later: (ms: number, act: () => void) => () => void;
  /** Whether the user may check and save it. */
  readonly mayAuthor: boolean;
}

export type EditorState =
  | { readonly status: 'loading' | 'ready' }
  | { readonly status: 'failed'; readonly error: unknown };

/** Delay of a check after the last change, in milliseconds. */
const CHECK_AFTER_MS = 300;

export class Editor {
  readonly state = signal<EditorState>({ status: 'loading' });
  /** The last version read or saved, or null if it was never saved. */
  readonly saved = signal<TaggedBlueprint | null>(null);
  readonly #base;
  readonly #history;
  readonly draft;
  readonly canUndo;
  readonly canRedo;
  readonly isChanged;
  /** The id that the user has typed for a new council. Empty: one from its name. */
  readonly newId = signal('');
  /** The names of the saved councils, which members can run, by id. Empty before they are loaded. */
  readonly councils = signal<ReadonlyMap<string, string>>(new Map());
  readonly selected = signal<NodeOrEdge | null>(null);
  /** Whether the selected node is new, so that the name field gets the focus. */
  readonly isNew = signal(false);
  /** Another user's version that prevents saving; `theirs` is null if the blueprint was deleted. */
  readonly conflict = signal<{ readonly theirs: TaggedBlueprint | null } | null>(null);
  readonly isSaving = signal(false);
  /** Why the last check failed, or null. */
  readonly checkFault = signal<unknown>(null);
  readonly findings;
  readonly roles;
  /** Whether a run would start, or null before a check. */
  readonly isValid;
  readonly #answer;
  readonly #deps: EditorDeps;
  readonly #abort = new AbortController();
  #cancelCheck: () => void = () => undefined;
  #areCouncilsAsked = false;

  /** @param start the first content */
  constructor(start: Draft, deps: EditorDeps) {
    this.#deps = deps;
    this.#base = signal(start);
    this.#history = signal(historyOf(start));
    this.#answer = signal<Answer>({ ...NO_ANSWER, draft: start });
    this.draft = computed(() => this.#history.value.present);
    this.canUndo = computed(() => this.#history.value.past.length > 0);
    this.canRedo = computed(() => this.#history.value.future.length > 0);
    this.isChanged = computed(() => changesBetween(this.#base.value, this.draft.value).length > 0);
    this.findings = computed(() => findingsOf(this.draft.value, this.#answer.value));
    this.roles = computed(() => this.#answer.value.roles);
    this.isValid = computed(() => {
      const { draft, valid } = this.#answer.value;
      return draft === this.draft.value ? valid : null;
    });
  }

  get mayEdit(): boolean {
    return this.#deps.mayAuthor;
  }

  /** What is wrong with a field, or with an item of its list of names, or null. @param path such as `nodes[0].quorum` */
  faultAt(path: string): string | null {
    return (
      this.findings.value.find((each) => each.path.replace(/(fallbacks|documents)\[\d+\]$/, '$1') === path)?.message ??
      null
    );
  }

  /** The number of findings in a part of the blueprint. @param path such as `nodes[0].members[1]` */
  faultsUnder(path: string): number {
    return this.findings.value.filter((each) => each.path === path || each.path.startsWith(`${path}.`)).length;
  }

  /** Loads a saved blueprint. */
  async load(id: string): Promise<void> {
    this.state.value = { status: 'loading' };
    try {
      this.#adopt(await this.#deps.council.blueprints.get(id, { signal: this.#abort.signal }));
      this.#history.value = historyOf(this.#base.value);
      this.state.value = { status: 'ready' };
      this.#checkSoon();
    } catch (error) {
      if (!this.#abort.signal.aborted) this.state.value = { status: 'failed', error };
    }
  }

  /** Loads the names of the saved councils, once. */
  loadCouncils(): void {
    if (this.#areCouncilsAsked) return;
    this.#areCouncilsAsked = true;
    void this.#readCouncils();
  }

  async #readCouncils(): Promise<void> {
    const found = new Map<string, string>();
    try {
      for await (const { id, name } of this.#deps.council.blueprints.list({ signal: this.#abort.signal }))
        found.set(id, name);
    } catch {
      // The field then shows the id alone, and asks again when it opens.
      this.#areCouncilsAsked = false;
    }
    this.councils.value = found;
  }

  /** Starts with an unsaved draft. */
  begin(draft: Draft): void {
    this.#history.value = edited(this.#history.value, draft);
    this.state.value = { status: 'ready' };
    this.#checkSoon();
  }

  /** @param name see {@link edited} */
  edit(next: Draft, name: string | null = null): void {
    if (!this.#deps.mayAuthor) return;
    this.#history.value = edited(this.#history.value, next, name);
    this.#checkSoon();
  }

  select(part: NodeOrEdge | null): void {
    this.endEdit();
    this.selected.value = part;
  }

  /** The next change starts a new undo step. */
  endEdit(): void {
    this.#history.value = ended(this.#history.value);
  }

  undo(): void {
    this.#step(undone(this.#history.value));
  }

  redo(): void {
    this.#step(redone(this.#history.value));
  }

  /** Saves the draft. Returns null and sets `conflict` if another user saved first. @throws any other error */
  async save(): Promise<TaggedBlueprint | null> {
    const { blueprints } = this.#deps.council;
    const [saved, draft] = [this.saved.value, this.draft.value];
    return await this.#saving(draft, () =>
      saved === null
        ? this.#create(draft)
        : blueprints.update(saved.id, updateOf(draft, saved), { ifMatch: saved.etag }),
    );
  }

  /** Saves the draft over the other user's version. */
  async overwrite(): Promise<TaggedBlueprint | null> {
    const theirs = this.conflict.value?.theirs ?? null;
    const [id, draft] = [this.saved.value?.id, this.draft.value];
    const { blueprints } = this.#deps.council;
    if (id === undefined) return null;
    return await this.#saving(draft, () =>
      theirs === null
        ? blueprints.create({ ...bodyOf(draft), id })
        : blueprints.update(id, updateOf(draft, theirs), { ifMatch: theirs.etag }),
    );
  }

  /** Replaces the draft by the other user's version; undo restores the draft. */
  useTheirs(): void {
    const theirs = this.conflict.value?.theirs ?? null;
    if (theirs === null) return;
    batch(() => {
      this.conflict.value = null;
      this.#adopt(theirs);
      this.edit(this.#base.value);
    });
  }

  /** Checks the draft now. Each edit does so after a delay. */
  async check(): Promise<void> {
    const draft = this.draft.value;
    if (!this.#deps.mayAuthor) return;
    try {
      const { signal } = this.#abort;
      // With its id, so that the service finds a council that contains itself.
      const id = this.saved.value?.id;
      const ask = (body: BlueprintCreate) =>
        this.#deps.council.blueprints.validate({ ...body, ...(id !== undefined && { id }) }, { signal });
      const answer = await checked(draft, ask, this.roles.value);
      if (draft === this.draft.value) this.#answer.value = answer;
      this.checkFault.value = null;
    } catch (error) {
      if (this.#abort.signal.aborted || draft !== this.draft.value) return;
      this.checkFault.value = error;
      if (error instanceof InvalidError) this.#answer.value = refused(draft, [], this.roles.value);
    }
  }

  /** Cancels pending requests. */
  stop(): void {
    this.#cancelCheck();
    this.#abort.abort();
  }

  async #create(draft: Draft): Promise<TaggedBlueprint> {
    const { blueprints } = this.#deps.council;
    const typed = this.newId.peek();
    if (typed !== '') return await blueprints.create({ ...bodyOf(draft), id: typed });
    for (const id of idsFrom(draft.name)) {
      try {
        return await blueprints.create({ ...bodyOf(draft), id });
      } catch (error) {
        if (!isIdRefused(error)) throw error;
      }
    }
    return await blueprints.create(bodyOf(draft));
  }

  #checkSoon(): void {
    this.#cancelCheck();
    if (this.#deps.mayAuthor) this.#cancelCheck = this.#deps.later(CHECK_AFTER_MS, () => void this.check());
  }

  #step(history: ReturnType<typeof historyOf<Draft>>): void {
    if (history === this.#history.value) return;
    batch(() => {
      const selected = this.selected.value;
      const before = selected === null ? undefined : idAt(this.draft.value, selected);
      this.#history.value = history;
      if (selected !== null && idAt(history.present, selected) !== before) this.selected.value = null;
      this.#checkSoon();
    });
  }

  #adopt(blueprint: TaggedBlueprint): void {
    const { warnings } = blueprint;
    this.saved.value = blueprint;
    this.#base.value = draftOf(blueprint);
    this.#answer.value = { draft: this.#base.value, valid: null, warnings, roles: rolesOf(blueprint) };
  }

  async #saving(draft: Draft, ask: () => Promise<TaggedBlueprint>): Promise<TaggedBlueprint | null> {
    this.isSaving.value = true;
    try {
      const now = await ask();
      batch(() => {
        this.conflict.value = null;
        this.#adopt(now);
        // Fields that the service fills in are not an edit. Changes made meanwhile stay.
        if (this.draft.value === draft)
          this.#history.value = { ...this.#history.value, present: this.#base.value, open: null };
        this.#checkSoon();
      });
      return now;
    } catch (error) {
      const hasMoved = error instanceof PreconditionFailedError || error instanceof NotFoundError;
      if (!hasMoved || this.saved.value === null) throw error;
      this.conflict.value = { theirs: await this.#theirs() };
      return null;
    } finally {
      this.isSaving.value = false;
    }
  }

  async #theirs(): Promise<TaggedBlueprint | null> {
    const id = this.saved.value?.id;
    if (id === undefined) return null;
    try {
      return await this.#deps.council.blueprints.get(id);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }
}

function idAt({ nodes, edges }: Draft, { kind, at }: NodeOrEdge): string | undefined {
  return kind === 'node' ? nodes[at]?.id : edges[at]?.id;
}

/** Edits that can be undone and redone. */
export interface History<T> {
  readonly past: readonly T[];
  readonly present: T;
  readonly future: readonly T[];
  /** The name of the last edit, which the next edit of that name extends, or null if it has ended. */
  readonly open: string | null;
}

const MOST_PAST = 500;

export function historyOf<T extends object>(present: T): History<T> {
  return { past: [], present, future: [], open: null };
}

/** @param name undo reverts consecutive edits of one name together; null for a single edit */
export function edited<T>(history: History<T>, present: T, name: string | null = null): History<T> {
  if (present === history.present) return history;
  const isExtended = name !== null && name === history.open;
  const past = isExtended ? history.past : [...history.past, history.present].slice(-MOST_PAST);
  return { past, present, future: [], open: name };
}

/** Ends the last edit: the next one starts a new undo step. */
export function ended<T>(history: History<T>): History<T> {
  return history.open === null ? history : { ...history, open: null };
}

export function undone<T extends object>(history: History<T>): History<T> {
  const before = history.past.at(-1);
  return before === undefined
    ? history
    : { past: history.past.slice(0, -1), present: before, future: [history.present, ...history.future], open: null };
}

export function redone<T extends object>(history: History<T>): History<T> {
  const [after, ...future] = history.future;
  return after === undefined
    ? history
    : { past: [...history.past, history.present], present: after, future, open: null };
}
