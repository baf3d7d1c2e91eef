/**
 * The Merkle tree of RFC 6962, section 2.1, over the leaves of the ledger. It keeps the hash of each full tile of 256 leaves
 * (and of 256 of these, and so on), and the leaf hashes of the last partial tile: 32 bytes for 256 leaves.
 */
import { hash } from 'node:crypto';
import { present } from '../system/element.js';

/** Leaves of a tile, and tiles of a tile of the next level (C2SP tlog-tiles). */
export const TILE_WIDTH = 256;

/** SHA-256(0x00 || entry). */
export function leafHash(entry: Uint8Array): Buffer {
  return sha256(LEAF, entry);
}

/** SHA-256(0x01 || left || right). */
function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(NODE, left, right);
}

const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

function sha256(...parts: readonly Uint8Array[]): Buffer {
  return hash('sha256', Buffer.concat(parts), 'buffer');
}

/** Reads the leaf hashes of a full tile, by its number. */
export type ReadTile = (tile: number) => Promise<readonly Buffer[]>;

/** The leaf hashes of tiles, by number. */
type Tiles = ReadonlyMap<number, readonly Buffer[]>;

/** Leaves from the first number to before the second. */
type Range = readonly [from: number, to: number];

export class MerkleTree {
  readonly #read: ReadTile;
  /** By level: the leaf hashes of the last tile, at most 255, and from level 1 the hashes of full subtrees of 256^level leaves. */
  readonly #hashes: Buffer[][] = [[]];
  #size = 0;

  constructor(read: ReadTile) {
    this.#read = read;
  }

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /** Adds a leaf at the end. @param hash its leaf hash */
  add(hash: Buffer): void {
    this.#size += 1;
    this.#add(0, hash);
    if (this.#size % TILE_WIDTH === 0) this.#hashes[0] = [];
  }

  #add(level: number, hash: Buffer): void {
    const hashes = (this.#hashes[level] ??= []);
    hashes.push(hash);
    if (hashes.length % TILE_WIDTH === 0) this.#add(level + 1, rootOf(hashes.slice(-TILE_WIDTH)));
  }

  /** Root of all leaves. */
  root(): Buffer {
    return this.#size === 0 ? sha256() : this.#hash([0, this.#size], new Map([this.#lastTile]));
  }

  /** Root of the first leaves. */
  async rootAt(size: number): Promise<Buffer> {
    return size === 0 ? sha256() : this.#hash([0, size], await this.#tilesWith([size - 1]));
  }

  /** Inclusion proof of a leaf in the tree of the first leaves (2.1.1), from the leaf's sibling to the root's child. */
  async inclusion(index: number, size: number): Promise<readonly Buffer[]> {
    const tiles = await this.#tilesWith([index, size - 1]);
    return this.#path(size, { tiles, leaf: index, isEnd: ([from, to]) => to - from === 1 }).path;
  }

  /** Consistency proof between the trees of the first `old` and the first `size` leaves (2.1.2). */
  async consistency(old: number, size: number): Promise<readonly Buffer[]> {
    if (old === 0 || old === size) return [];
    const tiles = await this.#tilesWith([old - 1, size - 1]);
    const { path, end } = this.#path(size, { tiles, leaf: old - 1, isEnd: ([, to]) => to === old });
    return end[0] === 0 ? path : [this.#hash(end, tiles), ...path];
  }

  /** The siblings of the nodes from the root of the first leaves down to a node that has a leaf, the lowest first. */
  #path(
    size: number,
    { tiles, leaf, isEnd }: { readonly tiles: Tiles; readonly leaf: number; readonly isEnd: (node: Range) => boolean },
  ): { readonly path: readonly Buffer[]; readonly end: Range } {
    const path: Buffer[] = [];
    let node: Range = [0, size];
    while (!isEnd(node)) {
      const [from, to] = node;
      const split = from + splitOf(to - from);
      const isLeft = leaf < split;
      path.unshift(this.#hash(isLeft ? [split, to] : [from, split], tiles));
      node = isLeft ? [from, split] : [split, to];
    }
    return { path, end: node };
  }

  /**
   * Hashes of a tile of C2SP tlog-tiles at a level from 1, or null if the tree has fewer.
   *
   * @param width number of hashes, 1 to 256
   */
  tile(level: number, number: number, width: number): readonly Buffer[] | null {
    const from = number * TILE_WIDTH;
    const hashes = this.#hashes[level]?.slice(from, from + width) ?? [];
    return hashes.length === width ? hashes : null;
  }

  get #lastTile(): readonly [number, readonly Buffer[]] {
    return [Math.floor(this.#size / TILE_WIDTH), this.#hashes[0] ?? []];
  }

  /** The last tile, and the tiles with these leaves: all whose leaf hashes a proof up to there needs. */
  async #tilesWith(leaves: readonly number[]): Promise<Tiles> {
    const tiles = new Map([this.#lastTile]);
    for (const leaf of leaves) {
      const tile = Math.floor(leaf / TILE_WIDTH);
      if (!tiles.has(tile)) tiles.set(tile, await this.#read(tile));
    }
    return tiles;
  }

  /** The tree hash of a range of leaves that is a node of the tree, or of its right edge. */
  #hash([from, to]: Range, tiles: Tiles): Buffer {
    const size = to - from;
    if (size === 1) return present(tiles.get(Math.floor(from / TILE_WIDTH))?.[from % TILE_WIDTH], 'leaf of the tree');
    for (let level = 1, width = TILE_WIDTH; width <= size; level += 1, width *= TILE_WIDTH) {
      const known = width === size ? this.#hashes[level]?.[from / width] : undefined;
      if (known !== undefined) return known;
    }
    const split = from + splitOf(size);
    return nodeHash(this.#hash([from, split], tiles), this.#hash([split, to], tiles));
  }
}

/** The tree hash of some hashes. */
function rootOf(hashes: readonly Buffer[]): Buffer {
  if (hashes.length <= 1) return hashes[0] ?? sha256();
  const split = splitOf(hashes.length);
  return nodeHash(rootOf(hashes.slice(0, split)), rootOf(hashes.slice(split)));
}

/** The largest power of two below a size: where RFC 6962 splits a tree. */
function splitOf(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1));
}

/** Root that an inclusion proof leads to, or null if the proof has another length (2.1.1). */
export function rootByInclusion(
  leaf: Uint8Array,
  { index, size, path }: { readonly index: number; readonly size: number; readonly path: readonly Uint8Array[] },
): Buffer | null {
  const sibling = path.at(-1);
  if (size === 1 && index === 0 && sibling === undefined) return Buffer.from(leaf);
  if (index >= size || size === 1 || sibling === undefined) return null;
  const split = splitOf(size);
  const [isLeft, below] = [index < split, path.slice(0, -1)];
  const child = isLeft ? { index, size: split } : { index: index - split, size: size - split };
  const hash = rootByInclusion(leaf, { ...child, path: below });
  return hash && (isLeft ? nodeHash(hash, sibling) : nodeHash(sibling, hash));
}
