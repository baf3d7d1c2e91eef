/** Which answers each step of a run is shown, and in which order (contract, section 6.4), from the recorded data alone. */
import type { Graph, GraphNode, NodeOutput, PanelClosedData } from '../../src/generated/schemas.js';

/** The step that reads. */
interface Reader {
  readonly runId: string;
  readonly step: number;
  readonly node: string;
  readonly member: string | undefined;
}

/** Answers that stand in a draft, by the node of their panel. */
interface Shown {
  readonly panel: string;
  readonly members: readonly string[];
}

export class Readers {
  readonly #nodes: ReadonlyMap<string, GraphNode>;
  readonly #after: ReadonlyMap<string, ReadonlySet<string>>;
  /** The answers that a rank or judge reads, in the order of their panel. */
  #reviewed: Shown | null = null;
  /** The answers in drafts; null while a human may have replaced some. */
  #inDrafts: readonly Shown[] | null = [];

  constructor({ nodes, edges }: Graph) {
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
    const targets = (from: string): readonly string[] =>
      edges.flatMap((edge) => (edge.source === from ? [edge.target] : []));
    this.#after = new Map(nodes.map(({ id }) => [id, reached(id, targets)]));
  }

  /** The members whose answers a rank reviews, in the order of their panel. */
  get reviewed(): readonly string[] {
    return this.#reviewed?.members ?? [];
  }

  /** What is wrong with the order that a step was shown, or null. */
  wrongOrder(reader: Reader, order: readonly string[], sha256: (text: string) => string): string | null {
    const expected = this.#shownTo(reader);
    if (expected === null) return null;
    const key = (member: string): string =>
      sha256(`${reader.runId}\n${reader.step}\n${reader.member ?? reader.node}\n${member}`);
    const members = expected.flatMap((each) => each.members);
    const sorted = members
      .map((member) => `${key(member)} ${member}`)
      .toSorted()
      .map((each) => each.split(' ')[1] ?? '');
    return sorted.join(' ') === order.join(' ') ? null : `expected is ${sorted.join(' ')}`;
  }

  closed({ id, role, members = [] }: GraphNode, { answered, result }: PanelClosedData): void {
    if (role === 'panel') {
      this.#reviewed = { panel: id, members: members.map((each) => each.id).filter((each) => answered.includes(each)) };
      this.#write(id, this.#reviewed);
    } else if (role === 'rank' && this.#reviewed !== null && result !== null && 'kept' in result) {
      const { kept } = result;
      this.#reviewed = { ...this.#reviewed, members: this.#reviewed.members.filter((each) => kept.includes(each)) };
      this.#write(id, this.#reviewed);
    }
  }

  completed({ node, output }: { readonly node: string; readonly output: NodeOutput }): void {
    if ('draft' in output) this.#write(node, null);
  }

  /** A human has changed a state, perhaps its draft. */
  modified(): void {
    this.#inDrafts = null;
  }

  /** A node replaces the draft that has reached it. */
  #write(node: string, shown: Shown | null): void {
    const others = (this.#inDrafts ?? []).filter(({ panel }) => this.#after.get(panel)?.has(node) !== true);
    this.#inDrafts = [...others.filter(({ panel }) => panel !== shown?.panel), ...(shown === null ? [] : [shown])];
  }

  /** The answers that a step is shown, or null if that is unknown. */
  #shownTo({ node, member }: Reader): readonly Shown[] | null {
    const { role, members } = this.#nodes.get(node) ?? {};
    if (role !== 'rank' && role !== 'judge') {
      return this.#inDrafts && this.#inDrafts.filter(({ panel }) => this.#after.get(panel)?.has(node) === true);
    }
    if (this.#reviewed === null) return [];
    const leavesOut = role === 'rank' && members === undefined && this.#reviewed.members.length >= 3;
    return [{ ...this.#reviewed, members: this.#reviewed.members.filter((each) => !leavesOut || each !== member) }];
  }
}

/** The nodes after one, by any path. */
function reached(from: string, targets: (from: string) => readonly string[]): ReadonlySet<string> {
  const found = new Set<string>();
  const left = [...targets(from)];
  for (let each = left.pop(); each !== undefined; each = left.pop()) {
    if (found.has(each)) continue;
    found.add(each);
    left.push(...targets(each));
  }
  return found;
}
