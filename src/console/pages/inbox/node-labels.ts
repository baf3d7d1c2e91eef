/** Labels of nodes in the inbox, from the blueprints of the runs. */
import { signal } from '@preact/signals';
import type { CouncilClient } from '../../../client/client.js';

/** Loads each blueprint once. Shows node ids until it is loaded, or if it was deleted. */
export class NodeLabels {
  readonly #client: Pick<CouncilClient, 'blueprints'>;
  readonly #labels = signal<ReadonlyMap<string, ReadonlyMap<string, string>>>(new Map());
  readonly #requested = new Set<string>();

  constructor(client: Pick<CouncilClient, 'blueprints'>) {
    this.#client = client;
  }

  /** The label of a node. @param blueprintId or null for the built-in council */
  labelOf(blueprintId: string | null, node: string): string {
    if (blueprintId === null) return node;
    if (!this.#requested.has(blueprintId)) void this.#load(blueprintId);
    return this.#labels.value.get(blueprintId)?.get(node) ?? node;
  }

  async #load(blueprintId: string): Promise<void> {
    this.#requested.add(blueprintId);
    const blueprint = await this.#client.blueprints.get(blueprintId).catch(() => null);
    if (blueprint === null) return;
    const labels = new Map(blueprint.nodes.map(({ id, label }) => [id, label]));
    this.#labels.value = new Map(this.#labels.value).set(blueprintId, labels);
  }
}
