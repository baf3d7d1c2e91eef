/** A blueprint in the editor: what was saved, what it has become since, and what is wrong with it. */
import { batch, computed, signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';
import type { TaggedBlueprint } from '../../../client/blueprints.js';
import { InvalidError, NotFoundError, PreconditionFailedError } from '../../../client/errors.js';
import type { BlueprintUpdate, BlueprintWarning, NodeRole } from '../../../generated/schemas.js';
import { conditionFault } from '../../record/drawn-graph.js';
import type { Draft, Part } from './draft.js';
import { bodyOf, draftOf } from './draft.js';
import { changesBetween } from './changes.js';
import { edited, historyOf, redone, sealed, undone } from './history.js';

export interface EditorDeps {
  readonly council: Pick<CouncilClient, 'blueprints'>;
  /** Acts after a while, unless it is taken back. */
  readonly later: (ms: number, act: () => void) => () => void;
  /** Whether it may be checked and saved. */
  readonly mayAuthor: boolean;
}

/** Something that is wrong or odd, at its place. */
export interface Finding extends BlueprintWarning {
  /** Null: it is about the whole. */
  readonly part: Part | null;
}

/** What the service says of the draft. */
interface Answer {
  readonly draft: Draft;
  /** Whether a run would start; null: it was not asked. */
  readonly valid: boolean | null;
  readonly warnings: readonly BlueprintWarning[];
  readonly roles: ReadonlyMap<string, NodeRole>;
}

export type EditorState =
  | { readonly status: 'loading' | 'ready' }
  | { readonly status: 'failed'; readonly error: unknown };

/** How long nothing is typed before the whole is checked. */
const CHECK_AFTER_MS = 300;
const NO_ANSWER = { valid: null, warnings: [], roles: new Map<string, NodeRole>() };

export class Editor {
  readonly state = signal<EditorState>({ status: 'loading' });
  /** As it was read or saved last; null: it never was. */
  readonly saved = signal<TaggedBlueprint | null>(null);
  readonly #base;
  readonly #history;
  readonly draft;
  readonly canUndo;
  readonly canRedo;
  readonly isChanged;
  readonly selected = signal<Part | null>(null);
  /** What is selected was just added, and wants a name. */
  readonly isNew = signal(false);
  /** Somebody else saved it in the meantime, or deleted it: `theirs` is null. */
  readonly conflict = signal<{ readonly theirs: TaggedBlueprint | null } | null>(null);
  readonly isSaving = signal(false);
  /** Why it could not be checked; null: it could. */
  readonly checkFault = signal<unknown>(null);
  readonly findings;
  readonly roles;
  /** Whether a run of it would start; null: that is not known yet. */
  readonly isValid;
  readonly #answer;
  readonly #deps: EditorDeps;
  readonly #abort = new AbortController();
  #cancelCheck: () => void = () => undefined;

  /** @param start what is edited until something is saved */
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

  /** Reads what is saved under an id. */
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

  /** Begins with a draft that is saved nowhere. */
  begin(draft: Draft): void {
    this.#history.value = edited(this.#history.value, draft);
    this.state.value = { status: 'ready' };
    this.#checkSoon();
  }

  /** @param name edits of one name are taken back together, see {@link edited} */
  edit(next: Draft, name: string | null = null): void {
    if (!this.#deps.mayAuthor) return;
    this.#history.value = edited(this.#history.value, next, name);
    this.#checkSoon();
  }

  select(part: Part | null): void {
    this.seal();
    this.selected.value = part;
  }

  /** What is typed next is taken back by itself. */
  seal(): void {
    this.#history.value = sealed(this.#history.value);
  }

  undo(): void {
    this.#step(undone(this.#history.value));
  }

  redo(): void {
    this.#step(redone(this.#history.value));
  }

  /** Saves it under its id, or as a new one, unless somebody else was faster. @throws what cannot be mended here */
  async save(): Promise<TaggedBlueprint | null> {
    const { blueprints } = this.#deps.council;
    const [saved, draft] = [this.saved.value, this.draft.value];
    return await this.#saving(draft, () =>
      saved === null
        ? blueprints.create(bodyOf(draft))
        : blueprints.update(saved.id, updateOf(draft, saved), { ifMatch: saved.etag }),
    );
  }

  /** Saves it in place of what somebody else saved. */
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

  /** Goes on from what somebody else saved; one step back is what was here. */
  takeTheirs(): void {
    const theirs = this.conflict.value?.theirs ?? null;
    if (theirs === null) return;
    batch(() => {
      this.conflict.value = null;
      this.#adopt(theirs);
      this.edit(this.#base.value);
    });
  }

  /** Checks it now; that happens by itself after each edit. */
  async check(): Promise<void> {
    const draft = this.draft.value;
    if (!this.#deps.mayAuthor) return;
    try {
      const found = await this.#deps.council.blueprints.validate(bodyOf(draft), { signal: this.#abort.signal });
      if (draft === this.draft.value) this.#answer.value = { draft, ...found, roles: rolesOf(found) };
      this.checkFault.value = null;
    } catch (error) {
      if (this.#abort.signal.aborted || draft !== this.draft.value) return;
      this.checkFault.value = error instanceof InvalidError && error.errors.length > 0 ? null : error;
      if (error instanceof InvalidError) {
        const warnings = error.errors.map(({ loc, msg }) => ({ path: pathOf(loc.slice(1)), message: msg }));
        this.#answer.value = { draft, valid: false, warnings, roles: this.roles.value };
      }
    }
  }

  /** Nothing is asked any more. */
  stop(): void {
    this.#cancelCheck();
    this.#abort.abort();
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
        // What the service has filled in is no edit; what was typed meanwhile stays.
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

/** `{}` lifts a rule of approvals; a field that is not named would stay as it was. */
function updateOf(draft: Draft, saved: TaggedBlueprint): BlueprintUpdate {
  return { ...bodyOf(draft), ...(draft.approvals === undefined && saved.approvals !== undefined && { approvals: {} }) };
}

function rolesOf({ roles }: Pick<TaggedBlueprint, 'roles'>): ReadonlyMap<string, NodeRole> {
  return new Map(roles.map(({ node, role }) => [node, role]));
}

/** What is wrong with a draft: its conditions at once, the rest as the service has said last, unless places have moved. */
function findingsOf(draft: Draft, answer: Answer): readonly Finding[] {
  const { nodes, edges } = answer.draft;
  const isStale = nodes.length !== draft.nodes.length || edges.length !== draft.edges.length;
  const own = draft.edges.flatMap(({ type, condition }, at): Finding[] => {
    const message = type === 'conditional' ? conditionFault(condition ?? '') : null;
    return message === null ? [] : [{ path: `edges[${at}].condition`, message, part: { kind: 'edge', at } }];
  });
  const hasOwn = new Set(own.map(({ path }) => path));
  const ofService = isStale ? [] : answer.warnings.filter((each) => !isOfCondition(each) || answer.draft === draft);
  return [
    ...own,
    ...ofService.filter(({ path }) => !hasOwn.has(path)).map((each) => ({ ...each, part: partAt(each.path) })),
  ];
}

function isOfCondition({ path }: BlueprintWarning): boolean {
  return path.endsWith('.condition');
}

/** The node or edge that a path such as `edges[2].target` leads to. */
function partAt(path: string): Part | null {
  const [, list, at] = /^(node|edge)s\[(\d+)\]/.exec(path) ?? [];
  return list === 'node' || list === 'edge' ? { kind: list, at: Number(at) } : null;
}

/** A place in a body as a path, such as `nodes[0].label`. */
function pathOf(place: readonly (string | number)[]): string {
  return place
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');
}

function idAt({ nodes, edges }: Draft, { kind, at }: Part): string | undefined {
  return kind === 'node' ? nodes[at]?.id : edges[at]?.id;
}
