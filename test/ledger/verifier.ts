/**
 * A verifier of checkpoints, proofs and tiles, written after RFC 6962 and the texts of C2SP (signed-note, tlog-checkpoint,
 * tlog-proof, tlog-tiles, tlog-cosignature). It imports nothing of the service.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';

export const sha256 = (...parts: readonly Uint8Array[]): Buffer =>
  createHash('sha256').update(Buffer.concat(parts)).digest();
export const leafHash = (entry: Uint8Array): Buffer => sha256(Buffer.of(0), entry);
export const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => sha256(Buffer.of(1), left, right);

/** The Merkle tree hash of leaf hashes (RFC 6962, 2.1). */
export function treeHash(hashes: readonly Buffer[]): Buffer {
  if (hashes.length === 0) return sha256();
  if (hashes.length === 1) return hashes[0] ?? Buffer.of();
  let k = 1;
  while (k * 2 < hashes.length) k *= 2;
  return nodeHash(treeHash(hashes.slice(0, k)), treeHash(hashes.slice(k)));
}

export interface Key {
  readonly name: string;
  readonly id: string;
  readonly type: number;
  readonly key: Buffer;
}

/** signed-note, "Verifier keys". */
export function parseVkey(vkey: string): Key {
  const [name = '', id = '', ...rest] = vkey.split('+');
  const bytes = Buffer.from(rest.join('+'), 'base64');
  const expected = sha256(Buffer.from(name), Buffer.of(0x0a), bytes).subarray(0, 4).toString('hex');
  if (expected !== id) throw new Error('the key id is not the hash of name, type and key');
  return { name, id, type: bytes[0] ?? -1, key: bytes.subarray(1) };
}

function isValid(message: string, signature: Buffer, { key }: Key): boolean {
  // SubjectPublicKeyInfo of Ed25519 (RFC 8410).
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key]);
  return verify(null, Buffer.from(message), createPublicKey({ key: der, format: 'der', type: 'spki' }), signature);
}

export interface Opened {
  /** The note text, with its last newline. */
  readonly text: string;
  /** Times of cosignatures, in seconds; a signature of a log has none. */
  readonly times: readonly number[];
}

/** Opens a signed note: throws unless every key has signed it. */
export function openNote(note: string, ...keys: readonly Key[]): Opened {
  const at = note.lastIndexOf('\n\n');
  if (at < 0 || !note.endsWith('\n')) throw new Error('no signed note');
  const text = note.slice(0, at + 1);
  const lines = note.slice(at + 2, -1).split('\n');
  const times = keys.flatMap((key) => {
    const found = lines.flatMap((line) => signatureIn(line, key) ?? []);
    if (found.length === 0) throw new Error(`${key.name} has not signed`);
    return found.flatMap((bytes) => timeOf(bytes, key, text) ?? []);
  });
  return { text, times };
}

/** The bytes of a signature of a key, or null for a line of another key. */
function signatureIn(line: string, { name, id }: Key): Buffer | null {
  const [dash, by, base64 = '', ...more] = line.split(' ');
  if (dash !== '—' || more.length > 0) throw new Error(`no signature line: ${line}`);
  const bytes = Buffer.from(base64, 'base64');
  return by === name && bytes.subarray(0, 4).toString('hex') === id ? bytes : null;
}

/** The time of a valid cosignature, or null for a valid signature of a log. */
function timeOf(bytes: Buffer, key: Key, text: string): number | null {
  const time = key.type === 4 ? bytes.readBigUInt64BE(4) : null;
  const message = time === null ? text : `cosignature/v1\ntime ${time}\n${text}`;
  if (!isValid(message, bytes.subarray(time === null ? 4 : 12), key)) throw new Error('wrong signature');
  return time === null ? null : Number(time);
}

/** tlog-checkpoint. */
export function parseCheckpoint(text: string): {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
} {
  const lines = text.split('\n');
  if (lines.length !== 4 || lines[3] !== '') throw new Error('extension lines, or too few lines');
  const [origin = '', size = '', root = ''] = lines;
  return { origin, size: Number(size), root: Buffer.from(root, 'base64') };
}

/** tlog-proof: the entry and its index, after every check with the keys. */
export function openProof(
  proof: string,
  ...keys: readonly Key[]
): { entry: Buffer; index: number; size: number; times: readonly number[] } {
  const at = proof.indexOf('\n\n');
  const [head, extra = '', index = '', ...hashes] = proof.slice(0, at).split('\n');
  if (head !== 'c2sp.org/tlog-proof@v1' || !extra.startsWith('extra ') || !/^index \d+$/.test(index))
    throw new Error(proof);
  const { text, times } = openNote(proof.slice(at + 2), ...keys);
  const { origin, size, root } = parseCheckpoint(text);
  if (origin !== keys[0]?.name) throw new Error('another origin');
  const entry = Buffer.from(extra.slice('extra '.length), 'base64');
  const number = Number(index.slice('index '.length));
  const path = hashes.map((each) => Buffer.from(each, 'base64'));
  if (!hashBy(path, { number, size, leaf: leafHash(entry) }).equals(root)) throw new Error('another root');
  return { entry, index: number, size, times };
}

/** The root by the recursion of RFC 6962, 2.1.1, from the root's child down. */
function hashBy(
  path: readonly Buffer[],
  { number, size, leaf }: { number: number; size: number; leaf: Buffer },
): Buffer {
  if (size === 1) {
    if (path.length > 0 || number !== 0) throw new Error('the path is too long');
    return leaf;
  }
  let k = 1;
  while (k * 2 < size) k *= 2;
  const top = path.at(-1);
  if (top === undefined) throw new Error('the path is too short');
  const rest = path.slice(0, -1);
  return number < k
    ? nodeHash(hashBy(rest, { number, size: k, leaf }), top)
    : nodeHash(top, hashBy(rest, { number: number - k, size: size - k, leaf }));
}

interface Head {
  readonly size: number;
  readonly root: Buffer;
}

/** Whether a consistency proof leads from an old root to a new one, by the recursion of RFC 6962, 2.1.2. */
export function isConsistent(proof: readonly Buffer[], old: Head, now: Head): boolean {
  if (old.size === 0) return proof.length === 0;
  const rest = [...proof];
  const roots = rootsBy(rest, { old: old.size, size: now.size, known: old.root });
  return rest.length === 0 && roots !== null && roots[0].equals(old.root) && roots[1].equals(now.root);
}

function rootsBy(
  rest: Buffer[],
  { old, size, known }: { old: number; size: number; known: Buffer | null },
): readonly [Buffer, Buffer] | null {
  if (old === size) {
    const hash = known ?? rest.pop();
    return hash === undefined ? null : [hash, hash];
  }
  let k = 1;
  while (k * 2 < size) k *= 2;
  const top = rest.pop();
  const below = old <= k ? { old, size: k, known } : { old: old - k, size: size - k, known: null };
  const roots = rootsBy(rest, below);
  if (top === undefined || roots === null) return null;
  return old <= k ? [roots[0], nodeHash(roots[1], top)] : [nodeHash(top, roots[0]), nodeHash(top, roots[1])];
}
