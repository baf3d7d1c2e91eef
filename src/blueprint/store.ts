/**
 * The saved councils: one stream each on the log, whose last event is the current state. A change is appended at the
 * revision that it read, and repeated after a conflict, so that no update is lost.
 */
import type { System } from '../system/system.js';
import { AppendTooLarge } from '../eventlog/errors.js';
import { BlueprintContended, BlueprintMoved, BlueprintTaken, BlueprintTooLarge, BlueprintUnknown } from './errors.js';
import { ServiceStopping } from '../errors.js';
import type { Blueprint, BlueprintCreate, BlueprintUpdate } from '../generated/schemas.js';
import type { AggregateChange } from '../eventsourcing/aggregate.js';
import { changeAggregate, headAt } from '../eventsourcing/aggregate.js';
import type { EventLog } from '../eventlog/port.js';
import { elementAt } from '../system/element.js';
import { KeyedSequencer, TaskTracker } from '../system/async/tasks.js';
import type { InnerWarnings } from './councils.js';
import type { BlueprintFact } from './events.js';
import { blueprintOf, blueprintStream, isKeptAfter, recordedBlueprint } from './events.js';
import type { Saving } from './record.js';
import {
  MAX_BLUEPRINT_BYTES,
  councilIssues,
  councilOf,
  createdBlueprint,
  sentBytes,
  updatedBlueprint,
} from './record.js';
import type { KnownModels } from './models.js';
import type { GraphIssue } from './validate.js';
import type { LinkedEvent, VersionsPage, VersionsRange } from './stream.js';
import { blueprintVersions, checkedBlueprint, newestEvent } from './stream.js';

/** Attempts before a change fails. Changes of the same instance are sequential and need one attempt each. */
const MAX_TRIES = 20;

/** Most changes of one blueprint that wait for the one in flight. */
const MAX_WAITING = 100;

/** Decides the fact of a change, given the last event of the blueprint's stream. */
type Decide<F extends BlueprintFact> = (last: LinkedEvent | null) => readonly [F];

/** Whether the current blueprint is the one that a change expects. Called before each append. */
export type IsExpected = (current: Blueprint) => boolean;

/** The author of a change, and its condition. */
export interface Change {
  /** Name of the caller's key. Default: null, for a service without keys. */
  readonly actor?: string | null;
  /** Default: null, for any current blueprint. */
  readonly isExpected?: IsExpected | null;
}

export interface BlueprintStoreOptions {
  readonly log: EventLog;
  readonly system: System;
  readonly instanceId: string;
  /** Whether the service has keys. */
  readonly hasKeys: () => boolean;
  readonly models: KnownModels;
}

export class BlueprintStore {
  readonly #options: BlueprintStoreOptions;
  /** Changes in flight by blueprint. */
  readonly #changes = new KeyedSequencer();
  readonly #tasks = new TaskTracker();

  constructor(options: BlueprintStoreOptions) {
    this.#options = options;
  }

  /** The faults and warnings of a council that is not saved. */
  async issuesOf(draft: BlueprintCreate): Promise<readonly GraphIssue[]> {
    const inner = await this.#innerWarnings(draft.nodes);
    return councilIssues(councilOf(draft), { ...this.#saving(), inner });
  }

  /** The blueprint as recorded, or null if there is none. @throws {BlueprintCorrupt} */
  async find(blueprintId: string): Promise<Blueprint | null> {
    return this.#currentOf(await newestEvent(this.#options.log, blueprintId));
  }

  /** Its saves, newest first, also if it is deleted, or null if there never was one. @throws {BlueprintCorrupt} */
  versions(blueprintId: string, range: VersionsRange): Promise<VersionsPage | null> {
    const { log, system } = this.#options;
    return blueprintVersions({ log, sha256: system.sha256 }, blueprintId, range);
  }

  /** @throws {BlueprintTaken | BlueprintTooLarge | BlueprintContended} */
  async create(
    draft: BlueprintCreate & { readonly id: string },
    { actor = null }: Pick<Change, 'actor'> = {},
  ): Promise<Blueprint> {
    const { id: blueprintId } = draft;
    const inner = await this.#innerWarnings(draft.nodes);
    const blueprint = checkedSize(createdBlueprint(draft, { id: blueprintId, ...this.#saving(), inner }));
    await this.#change(blueprintId, (last) => {
      if (exists(last)) throw new BlueprintTaken({ blueprintId });
      return [{ type: 'BlueprintCreated', data: { blueprint: recordedBlueprint(blueprint), actor } }];
    });
    return blueprint;
  }

  /**
   * Changes the given fields.
   *
   * @throws {BlueprintUnknown | BlueprintMoved | BlueprintTooLarge | BlueprintContended | BlueprintCorrupt}
   */
  async update(
    blueprintId: string,
    change: BlueprintUpdate,
    { actor = null, isExpected = null }: Change = {},
  ): Promise<Blueprint> {
    const inner = await this.#innerWarnings(change.nodes ?? (await this.find(blueprintId))?.nodes ?? []);
    const fact = await this.#change(blueprintId, (last) => {
      const current = this.#currentOf(last);
      if (current === null) throw new BlueprintUnknown({ blueprintId });
      assertExpected(current, isExpected);
      const blueprint = checkedSize(updatedBlueprint(current, change, { ...this.#saving(), inner }));
      return [{ type: 'BlueprintUpdated', data: { blueprint: recordedBlueprint(blueprint), actor } }];
    });
    return blueprintOf(fact.data.blueprint);
  }

  /**
   * Deletes a blueprint, also a corrupt one if the change expects no version.
   *
   * @throws {BlueprintUnknown | BlueprintMoved | BlueprintContended | BlueprintCorrupt}
   */
  async remove(blueprintId: string, { actor = null, isExpected = null }: Change = {}): Promise<void> {
    await this.#change(blueprintId, (last) => {
      if (!exists(last)) throw new BlueprintUnknown({ blueprintId });
      const current = isExpected === null ? null : this.#currentOf(last);
      if (current !== null) assertExpected(current, isExpected);
      return [{ type: 'BlueprintDeleted', data: { actor } }];
    });
  }

  /** Waits for the log's next answer to changes in flight. Refuses queued changes. */
  async stop(): Promise<void> {
    await this.#tasks.end();
  }

  /** Makes changes of a blueprint sequential. Changes by other instances cause conflicts. */
  async #change<F extends BlueprintFact>(blueprintId: string, decide: Decide<F>): Promise<F> {
    if (this.#changes.count(blueprintId) > MAX_WAITING) throw new BlueprintContended({ blueprintId });
    const change: AggregateChange<LinkedEvent | null, F> = {
      stream: blueprintStream(blueprintId),
      subject: blueprintId,
      read: () => {
        // Refuses queued changes too.
        if (this.#tasks.isEnding) throw new ServiceStopping();
        return newestEvent(this.#options.log, blueprintId);
      },
      headOf: (last) => last && headAt(last.event),
      decide,
      limit: { conflicts: MAX_TRIES, error: (cause) => new BlueprintContended({ blueprintId }, { cause }) },
    };
    const changed = this.#changes.run(blueprintId, () => changeAggregate(this.#options, change, this.#tasks.signal));
    try {
      return elementAt((await this.#tasks.track(changed)).recorded, 0);
    } catch (error) {
      throw error instanceof AppendTooLarge ? tooLargeForLog(blueprintId, error) : error;
    }
  }

  async #innerWarnings(nodes: BlueprintCreate['nodes']): Promise<InnerWarnings> {
    const ids = new Set(nodes.flatMap(({ type, council }) => (type === 'council' ? (council ?? []) : [])));
    const all = [...ids].map(
      async (id) => [id, (await this.find(id))?.warnings.map(({ message }) => message) ?? []] as const,
    );
    return new Map(await Promise.all(all));
  }

  #saving(): Saving {
    const { system, hasKeys, models } = this.#options;
    return { at: system.now(), hasKeys: hasKeys(), models };
  }

  /** @throws {BlueprintCorrupt} */
  #currentOf(last: LinkedEvent | null): Blueprint | null {
    return last === null ? null : (checkedBlueprint(last, this.#options.system.sha256) ?? null);
  }
}

function exists(last: LinkedEvent | null): boolean {
  return last !== null && isKeptAfter(last.event) === true;
}

/** @throws {BlueprintMoved} */
function assertExpected(current: Blueprint, isExpected: IsExpected | null): void {
  const { id: blueprintId, version } = current;
  if (isExpected?.(current) === false) throw new BlueprintMoved({ blueprintId, version });
}

/** @throws {BlueprintTooLarge} */
function checkedSize(blueprint: Blueprint): Blueprint {
  const bytes = sentBytes(blueprint);
  if (bytes <= MAX_BLUEPRINT_BYTES) return blueprint;
  throw new BlueprintTooLarge({ blueprintId: blueprint.id, bytes, limit: MAX_BLUEPRINT_BYTES });
}

function tooLargeForLog(blueprintId: string, cause: AppendTooLarge): BlueprintTooLarge {
  const { bytes, limit } = cause.data;
  return new BlueprintTooLarge({ blueprintId, bytes, limit }, { cause });
}
