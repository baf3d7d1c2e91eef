import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { MerkleTree, leafHash, rootByInclusion } from '../../src/ledger/tree.js';

/** MTH, PATH and PROOF as RFC 6962, 2.1 writes them, over whole lists of entries. */
const sha256 = (...parts: readonly Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();
const split = (n: number): number => {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
};

function mth(d: readonly Buffer[]): Buffer {
  if (d.length === 0) return sha256();
  if (d.length === 1) return sha256(Buffer.of(0), d[0] ?? Buffer.of());
  const k = split(d.length);
  return sha256(Buffer.of(1), mth(d.slice(0, k)), mth(d.slice(k)));
}

function path(m: number, d: readonly Buffer[]): readonly Buffer[] {
  if (d.length <= 1) return [];
  const k = split(d.length);
  return m < k ? [...path(m, d.slice(0, k)), mth(d.slice(k))] : [...path(m - k, d.slice(k)), mth(d.slice(0, k))];
}

function subproof(m: number, d: readonly Buffer[], isWhole: boolean): readonly Buffer[] {
  if (m === d.length) return isWhole ? [] : [mth(d)];
  const k = split(d.length);
  return m <= k
    ? [...subproof(m, d.slice(0, k), isWhole), mth(d.slice(k))]
    : [...subproof(m - k, d.slice(k), false), mth(d.slice(0, k))];
}

const entries = (count: number): readonly Buffer[] =>
  Array.from({ length: count }, (_, at) => Buffer.from(`entry ${at}`));

function treeOf(all: readonly Buffer[]) {
  const reads: number[] = [];
  const tree = new MerkleTree(async (tile) => {
    reads.push(tile);
    return all.slice(tile * 256, (tile + 1) * 256).map(leafHash);
  });
  for (const each of all) tree.add(leafHash(each));
  return { tree, reads };
}

describe('The Merkle tree of the ledger', () => {
  it('has the roots of RFC 6962 and gives its proofs, for every small size', async () => {
    for (let size = 0; size <= 40; size += 1) {
      const all = entries(size);
      const { tree } = treeOf(all);
      expect(tree.root().equals(mth(all)), `root of ${size}`).to.equal(true);
      for (let old = 0; old <= size; old += 1) {
        expect(await tree.rootAt(old)).to.deep.equal(mth(all.slice(0, old)));
        const expected = old === 0 ? [] : subproof(old, all, true);
        expect(await tree.consistency(old, size), `${old} in ${size}`).to.deep.equal(expected);
      }
      for (let at = 0; at < size; at += 1) {
        const inclusion = await tree.inclusion(at, size);
        expect(inclusion, `leaf ${at} of ${size}`).to.deep.equal(path(at, all));
        const leaf = leafHash(all[at] ?? Buffer.of());
        expect(rootByInclusion(leaf, { index: at, size, path: inclusion })?.equals(tree.root())).to.equal(true);
        expect(rootByInclusion(leaf, { index: at, size, path: [...inclusion, leaf] })).to.equal(null);
      }
    }
  });

  it('keeps one hash of a full tile, and reads at most two tiles for a proof', async () => {
    const all = entries(1_500);
    const { tree, reads } = treeOf(all);
    for (const size of [1, 255, 256, 257, 511, 512, 700, 1_024, 1_100, 1_499, 1_500]) {
      const part = all.slice(0, size);
      expect(await tree.rootAt(size)).to.deep.equal(mth(part));
      for (const at of [0, 1, 255, 256, 300, 767, 1_023, 1_400].filter((index) => index < size)) {
        reads.length = 0;
        expect(await tree.inclusion(at, size)).to.deep.equal(path(at, part));
        expect(reads.length).to.be.lessThan(3);
        reads.length = 0;
        const proof = await tree.consistency(at + 1, size);
        expect(proof, `${at + 1} in ${size}`).to.deep.equal(subproof(at + 1, part, true));
        expect(reads.length).to.be.lessThan(3);
      }
    }
    expect(tree.tile(1, 0, 5)).to.deep.equal([0, 1, 2, 3, 4].map((at) => mth(all.slice(at * 256, (at + 1) * 256))));
    expect(tree.tile(1, 0, 6)).to.equal(null);
    expect(tree.tile(2, 0, 1)).to.equal(null);
  });
});
