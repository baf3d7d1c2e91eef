/**
 * The Merkle tree of RFC 6962, section 2.1, over the leaves of the ledger. It keeps the hash of each full tile of 256 leaves
 * (and of 256 of these, and so on), and the leaf hashes of the last partial tile: 32 bytes for 256 leaves.
 */
import { hash } from 'node:crypto';

/** Leaves of a tile, and tiles of a tile of the next level (C2SP tlog-tiles). */
export const TILE_WIDTH = 256;

/** SHA-256(0x00 || entry). */
export function leafHash(entry: Uint8Array): Buffer {
  return sha256(LEAF, entry);
}

/** SHA-256(0x01 || left || right). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(NODE, left, right);
}

const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

function sha256(...parts: readonly Uint8Array[]): Buffer {
  return hash('sha256', Buffer.concat(parts), 'buffer');
}

/** The leaf hashes of tiles, by number of the tile: what a hash needs of tiles that the tree does not keep. */
export type Tiles = ReadonlyMap<number, readonly Buffer[]>;

/** The tree does not keep the leaf hashes of a tile that it needs. The caller reads them from the log and asks again. */
class TileNeeded extends Error {
  readonly tile: number;
  constructor(tile: number) {
    super(`the leaf hashes of tile ${tile} are not in memory`);
    this.tile = tile;
  }
}

export class MerkleTree {
  /** The leaf hashes of the last tile, at most 255. */
  #last: Buffer[] = [];
  /** By level from 1: hashes of full subtrees of 256^level leaves. */
  readonly #full: Buffer[][] = [];
  #size = 0;

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /** Adds a leaf at the end. @param hash its leaf hash */
  add(hash: Buffer): void {
    this.#last.push(hash);
    this.#size += 1;
    if (this.#last.length < TILE_WIDTH) return;
    this.#addFull(1, rootOf(this.#last));
    this.#last = [];
  }

  /** Root of the first leaves. @throws TileNeeded, see `withTiles` */
  root(size = this.#size, tiles: Tiles = NO_TILES): Buffer {
    return size === 0 ? sha256() : this.#hash([0, size], tiles);
  }

  /** Inclusion proof of a leaf in the tree of the first leaves (2.1.1), from the leaf's sibling to the root's child. */
  inclusion(index: number, size: number, tiles: Tiles = NO_TILES): readonly Buffer[] {
    const path: Buffer[] = [];
    for (let [from, to] = [0, size]; to - from > 1;) {
      const split = from + splitOf(to - from);
      const isLeft = index < split;
      path.push(this.#hash(isLeft ? [split, to] : [from, split], tiles));
      [from, to] = isLeft ? [from, split] : [split, to];
    }
    return path.reverse();
  }

  /** Consistency proof between the trees of the first `old` and the first `size` leaves (2.1.2). */
  consistency(old: number, size: number, tiles: Tiles = NO_TILES): readonly Buffer[] {
    const path: Buffer[] = [];
    if (old === 0 || old === size) return path;
    let [from, to] = [0, size];
    while (old !== to) {
      const split = from + splitOf(to - from);
      const isLeft = old <= split;
      path.push(this.#hash(isLeft ? [split, to] : [from, split], tiles));
      [from, to] = isLeft ? [from, split] : [split, to];
    }
    if (from > 0) path.push(this.#hash([from, to], tiles));
    return path.reverse();
  }

  /**
   * Hashes of a tile of C2SP tlog-tiles at a level from 1, or null if the tree has fewer.
   *
   * @param width number of hashes, 1 to 256
   */
  tile(level: number, number: number, width: number): readonly Buffer[] | null {
    const from = number * TILE_WIDTH;
    const hashes = this.#full[level]?.slice(from, from + width) ?? [];
    return hashes.length === width ? hashes : null;
  }

  #addFull(level: number, hash: Buffer): void {
    const hashes = (this.#full[level] ??= []);
    hashes.push(hash);
    if (hashes.length % TILE_WIDTH === 0) this.#addFull(level + 1, rootOf(hashes.slice(-TILE_WIDTH)));
  }

  /** The tree hash of a range of leaves that is a node of the tree, or of its right edge. */
  #hash([from, to]: readonly [number, number], tiles: Tiles): Buffer {
    const size = to - from;
    if (size === 1) return this.#leaf(from, tiles);
    for (let level = 1, width = TILE_WIDTH; width <= size; level += 1, width *= TILE_WIDTH) {
      const known = width === size ? this.#full[level]?.[from / width] : undefined;
      if (known !== undefined) return known;
    }
    const split = from + splitOf(size);
    return nodeHash(this.#hash([from, split], tiles), this.#hash([split, to], tiles));
  }

  #leaf(index: number, tiles: Tiles): Buffer {
    const tile = Math.floor(index / TILE_WIDTH);
    const isLast = tile === Math.floor(this.#size / TILE_WIDTH);
    const hash = isLast ? this.#last[index % TILE_WIDTH] : tiles.get(tile)?.[index % TILE_WIDTH];
    if (hash === undefined) throw new TileNeeded(tile);
    return hash;
  }
}

const NO_TILES: Tiles = new Map();

/** Computes with tiles that are read when the computation needs them: at most two for a proof. */
export async function withTiles<T>(
  compute: (tiles: Tiles) => T,
  read: (tile: number) => Promise<readonly Buffer[]>,
): Promise<T> {
  const tiles = new Map<number, readonly Buffer[]>();
  for (;;) {
    try {
      return compute(tiles);
    } catch (error) {
      if (!(error instanceof TileNeeded) || tiles.has(error.tile)) throw error;
      tiles.set(error.tile, await read(error.tile));
    }
  }
}

/** The tree hash of some hashes. */
function rootOf(hashes: readonly Buffer[]): Buffer {
  let row = hashes;
  while (row.length > 1) {
    const next: Buffer[] = [];
    for (let at = 0; at < row.length; at += 2) {
      const [left, right] = [row[at], row[at + 1]];
      if (left !== undefined) next.push(right === undefined ? left : nodeHash(left, right));
    }
    row = next;
  }
  return row[0] ?? sha256();
}

/** The largest power of two below a size: where RFC 6962 splits a tree. */
function splitOf(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1));
}

/** Root that an inclusion proof leads to, or null if the proof has another length (RFC 9162, 2.1.3.2). */
export function rootByInclusion(
  leaf: Uint8Array,
  { index, size, path }: { readonly index: number; readonly size: number; readonly path: readonly Uint8Array[] },
): Buffer | null {
  if (index >= size) return null;
  let hash: Buffer = Buffer.from(leaf);
  let [node, last] = [index, size - 1];
  for (const sibling of path) {
    if (last === 0) return null;
    if (node % 2 === 1 || node === last) {
      hash = nodeHash(sibling, hash);
      while (node % 2 === 0 && node !== 0) [node, last] = [node / 2, Math.floor(last / 2)];
    } else hash = nodeHash(hash, sibling);
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return last === 0 ? hash : null;
}
