/**
 * The saved councils: one stream each on the log, whose last event is the truth. Changes are appended at the revision
 * they were made from and made again when somebody else was faster, so that an update never undoes another's.
 */
import type { Ambient } from '../ambient.js';
import {
  AppendTooLarge,
  BlueprintContended,
  BlueprintTaken,
  BlueprintTooLarge,
  BlueprintUnknown,
  RevisionConflict,
  ServiceStopping,
} from '../errors.js';
import type { Blueprint, BlueprintCreate, BlueprintUpdate } from '../generated/schemas.js';
import { appendSurely } from '../log/append-surely.js';
import { GENESIS_HASH, sealEvents } from '../log/chain.js';
import type { EventLog, RecordedEvent } from '../log/port.js';
import { underWay } from '../run/under-way.js';
import type { BlueprintFact } from './events.js';
import { blueprintAfter, blueprintStream } from './events.js';
import { createdBlueprint, updatedBlueprint } from './record.js';

/** Tries before a change gives up; changes of this process come one after the other and need one try each. */
const MAX_TRIES = 20;

export interface ShelfOptions {
  readonly log: EventLog;
  readonly ambient: Ambient;
  readonly instanceId: string;
}

export class BlueprintShelf {
  readonly #options: ShelfOptions;
  /** The last change of each blueprint under way here. */
  readonly #changes = new Map<string, Promise<unknown>>();
  readonly #underWay = underWay();

  constructor(options: ShelfOptions) {
    this.#options = options;
  }

  /** The blueprint as it stands on the log; null when there is none, or none any more. */
  async find(blueprintId: string): Promise<Blueprint | null> {
    return currentOf(await this.#last(blueprintId));
  }

  /** @throws {BlueprintTaken | BlueprintTooLarge | BlueprintContended} */
  async create(draft: BlueprintCreate): Promise<Blueprint> {
    const { ambient } = this.#options;
    const blueprintId = draft.id ?? ambient.uuid();
    const blueprint = createdBlueprint(draft, { id: blueprintId, at: ambient.now() });
    await this.#change(blueprintId, (current) => {
      if (current !== null) throw new BlueprintTaken({ blueprintId });
      return { type: 'BlueprintCreated', data: { blueprint } };
    });
    return blueprint;
  }

  /**
   * Changes the fields that are named.
   *
   * @throws {BlueprintUnknown | BlueprintTooLarge | BlueprintContended}
   */
  async update(blueprintId: string, change: BlueprintUpdate): Promise<Blueprint> {
    const fact = await this.#change(blueprintId, (current) => {
      if (current === null) throw new BlueprintUnknown({ blueprintId });
      const blueprint = updatedBlueprint(current, change, this.#options.ambient.now());
      return { type: 'BlueprintUpdated', data: { blueprint } };
    });
    return fact.data.blueprint;
  }

  /** @throws {BlueprintUnknown | BlueprintContended} */
  async remove(blueprintId: string): Promise<void> {
    await this.#change(blueprintId, (current) => {
      if (current === null) throw new BlueprintUnknown({ blueprintId });
      return { type: 'BlueprintDeleted', data: {} };
    });
  }

  /** Waits for changes under way no longer than the log takes to answer once. */
  async stop(): Promise<void> {
    await this.#underWay.end();
  }

  /** One change of a blueprint at a time here; others elsewhere show as conflicts. */
  #change<F extends BlueprintFact>(blueprintId: string, decide: (current: Blueprint | null) => F): Promise<F> {
    if (this.#underWay.isEnding) return Promise.reject(new ServiceStopping());
    const before = this.#changes.get(blueprintId) ?? Promise.resolve();
    const changed = this.#underWay.track(before.then(() => this.#untilAppended(blueprintId, decide)));
    const settled = changed.then(
      () => undefined,
      () => undefined,
    );
    this.#changes.set(blueprintId, settled);
    void settled.then(() => {
      if (this.#changes.get(blueprintId) === settled) this.#changes.delete(blueprintId);
    });
    return changed;
  }

  async #untilAppended<F extends BlueprintFact>(
    blueprintId: string,
    decide: (current: Blueprint | null) => F,
  ): Promise<F> {
    for (let tries = 1; ; tries += 1) {
      const last = await this.#last(blueprintId);
      const fact = decide(currentOf(last));
      try {
        await this.#append(blueprintId, fact, last);
        return fact;
      } catch (error) {
        if (error instanceof AppendTooLarge) throw new BlueprintTooLarge({ blueprintId }, { cause: error });
        if (!(error instanceof RevisionConflict)) throw error;
        if (tries >= MAX_TRIES) throw new BlueprintContended({ blueprintId }, { cause: error });
      }
    }
  }

  async #append(blueprintId: string, fact: BlueprintFact, last: RecordedEvent | null): Promise<void> {
    const { log, ambient, instanceId } = this.#options;
    const head = { seq: last?.revision ?? -1, hash: last?.metadata['hash'] ?? GENESIS_HASH };
    const { events } = sealEvents(head, [fact], {
      at: ambient.now(),
      nextId: ambient.uuid,
      sha256: ambient.sha256,
      metadata: { instanceId },
      correlationId: blueprintId,
      causationId: last?.id ?? blueprintId,
    });
    const append = { stream: blueprintStream(blueprintId), events, expected: last?.revision ?? ('none' as const) };
    await this.#underWay.untilEnd((signal) => appendSurely(log, append, { ambient, signal }));
  }

  async #last(blueprintId: string): Promise<RecordedEvent | null> {
    const { log } = this.#options;
    for await (const event of log.readStream(blueprintStream(blueprintId), { direction: 'backwards', max: 1 })) {
      return event;
    }
    return null;
  }
}

function currentOf(last: RecordedEvent | null): Blueprint | null {
  return last === null ? null : (blueprintAfter(last) ?? null);
}
