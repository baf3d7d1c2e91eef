/** Proofs that a leaf is in the ledger: C2SP tlog-proof. They are checked with no service and no database. */
import type { Checkpoint, VerifierKey } from './note.js';
import { NoteInvalid, signatureLine, checkpointIn } from './note.js';
import { leafHash, rootByInclusion } from './tree.js';

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

const PROOF =
  /^c2sp\.org\/tlog-proof@v1\nextra ([A-Za-z0-9+/]+={0,2})\nindex (0|[1-9]\d{0,14})\n((?:[A-Za-z0-9+/]{43}=\n)*)\n([^]+)$/;

export interface Proof {
  /** The bytes of the leaf. */
  readonly entry: Buffer;
  /** Its number. */
  readonly index: number;
  /** Hashes from the leaf's sibling to the child of the root. */
  readonly path: readonly Buffer[];
}

/** The text of a proof. @param note the checkpoint, with its signatures */
export function proofText({ entry, index, path }: Proof, note: string): string {
  const hashes = path.map((hash) => `${hash.toString('base64')}\n`).join('');
  return `${FIRST_LINE}\nextra ${entry.toString('base64')}\nindex ${index}\n${hashes}\n${note}`;
}

/**
 * Checks a proof by its own `extra`: the leaf is in the tree of the checkpoint, and the key has signed that.
 *
 * @throws {NoteInvalid} with what is wrong
 */
export function verifiedProof(text: string, key: VerifierKey): Proof & { readonly checkpoint: Checkpoint } {
  const [, extra, digits, hashes = '', note = ''] = PROOF.exec(text) ?? [];
  if (extra === undefined) throw new NoteInvalid(`it is no ${FIRST_LINE} with the leaf in its extra line`);
  const checkpoint = checkpointIn(note);
  if (checkpoint.origin !== key.name) throw new NoteInvalid(`it is of the ledger "${checkpoint.origin}"`);
  signatureLine(checkpoint, key);
  const [entry, index] = [Buffer.from(extra, 'base64'), Number(digits)];
  const path = hashes
    .split('\n')
    .slice(0, -1)
    .map((hash) => Buffer.from(hash, 'base64'));
  const root = rootByInclusion(leafHash(entry), { index, size: checkpoint.size, path });
  if (root?.equals(checkpoint.root) !== true)
    throw new NoteInvalid('its path does not lead to the root of its checkpoint');
  return { entry, index, path, checkpoint };
}
