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
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
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

  /** Root of all leaves. */
  root(): Buffer {
    return this.#rootOf(this.#size, new Map([this.#lastTile]));
  }

  /** Root of the first leaves. */
  async rootAt(size: number, read: ReadTile): Promise<Buffer> {
    return this.#rootOf(size, await this.#tilesWith([size - 1], read));
  }

  /** Inclusion proof of a leaf in the tree of the first leaves (2.1.1), from the leaf's sibling to the root's child. */
  async inclusion(index: number, size: number, read: ReadTile): Promise<readonly Buffer[]> {
    const tiles = await this.#tilesWith([index, size - 1], read);
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
  async consistency(old: number, size: number, read: ReadTile): Promise<readonly Buffer[]> {
    const path: Buffer[] = [];
    if (old === 0 || old === size) return path;
    const tiles = await this.#tilesWith([old - 1, size - 1], read);
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

  get #lastTile(): readonly [number, readonly Buffer[]] {
    return [Math.floor(this.#size / TILE_WIDTH), this.#last];
  }

  /** The last tile, and the tiles with these leaves: all whose leaf hashes a proof up to there needs. */
  async #tilesWith(leaves: readonly number[], read: ReadTile): Promise<Tiles> {
    const tiles = new Map([this.#lastTile]);
    for (const leaf of leaves) {
      const tile = Math.floor(leaf / TILE_WIDTH);
      if (leaf >= 0 && !tiles.has(tile)) tiles.set(tile, await read(tile));
    }
    return tiles;
  }

  #rootOf(size: number, tiles: Tiles): Buffer {
    return size === 0 ? sha256() : this.#hash([0, size], tiles);
  }

  /** The tree hash of a range of leaves that is a node of the tree, or of its right edge. */
  #hash([from, to]: readonly [number, number], tiles: Tiles): Buffer {
    const size = to - from;
    if (size === 1) return present(tiles.get(Math.floor(from / TILE_WIDTH))?.[from % TILE_WIDTH], 'leaf of the tree');
    for (let level = 1, width = TILE_WIDTH; width <= size; level += 1, width *= TILE_WIDTH) {
      const known = width === size ? this.#full[level]?.[from / width] : undefined;
      if (known !== undefined) return known;
    }
    const split = from + splitOf(size);
    return nodeHash(this.#hash([from, split], tiles), this.#hash([split, to], tiles));
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
