/** Signed notes of checkpoints: C2SP signed-note, tlog-checkpoint and tlog-cosignature, with Ed25519. */
import type { KeyObject } from 'node:crypto';
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { CouncilError } from '../errors.js';

/** Types of verifier keys and signatures in signed-note: of a log's own key, and of a witness. */
const OF_LOG = 0x01;
export const OF_WITNESS = 0x04;

/** A text is no note, checkpoint, key or proof, or its signature is wrong. */
export class NoteInvalid extends CouncilError<{ readonly reason: string }> {
  readonly code = 'ledger.note-invalid';
  constructor(reason: string) {
    super(reason, { reason });
  }
}

/** A verifier key: who signs, and the public key. */
export interface VerifierKey {
  readonly name: string;
  readonly type: number;
  /** The 32 bytes of the public key. */
  readonly key: Buffer;
}

/** A verifier key as text. A name is without spaces, plus signs and control characters. */
const VKEY = /^([^\s\p{Z}\p{Cc}+]+)\+([0-9a-f]{8})\+(.*)$/u;

/** The text of a verifier key: `<name>+<hex id>+<base64 of type and key>`. */
export function vkeyText({ name, type, key }: VerifierKey): string {
  return `${name}+${keyId({ name, type, key }).toString('hex')}+${Buffer.of(type, ...key).toString('base64')}`;
}

/** Reads a verifier key of a type, by default of a log. @throws {NoteInvalid} */
export function verifierKey(text: string, ofType = OF_LOG): VerifierKey {
  const [, name = '', id = '', base64 = ''] = VKEY.exec(text) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  const [type = 0, ...rest] = bytes;
  const found = { name, type, key: Buffer.from(rest) };
  const isWhole = bytes.toString('base64') === base64 && found.key.length === 32;
  if (isWhole && type === ofType && keyId(found).toString('hex') === id) return found;
  throw new NoteInvalid(`"${text}" is no Ed25519 verifier key of type ${ofType}`);
}

function keyId({ name, type, key }: VerifierKey): Buffer {
  return createHash('sha256').update(`${name}\n`).update(Buffer.of(type)).update(key).digest().subarray(0, 4);
}

/** Signs checkpoints. */
export interface NoteSigner {
  readonly key: VerifierKey;
  /** The signed note of a text that ends with a newline. */
  sign(text: string): string;
}

/** A signer by an Ed25519 key in PKCS#8 PEM. @throws {NoteInvalid | Error} it is another key, or none */
export function noteSigner(name: string, pem: string): NoteSigner {
  const secret = createPrivateKey(pem);
  if (secret.asymmetricKeyType !== 'ed25519') throw new NoteInvalid('no Ed25519 key in PKCS#8 PEM');
  const key = {
    name,
    type: OF_LOG,
    key: Buffer.from(createPublicKey(secret).export({ format: 'jwk' }).x ?? '', 'base64url'),
  };
  return {
    key,
    sign(text) {
      const signature = Buffer.concat([keyId(key), sign(null, Buffer.from(text), secret)]);
      return `${text}\n— ${name} ${signature.toString('base64')}\n`;
    },
  };
}

/** A new Ed25519 key in PKCS#8 PEM. */
export function newKeyPem(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

export interface TreeHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

/** The text of a checkpoint, without extension lines. */
export function checkpointText({ origin, size, root }: TreeHead): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** A checkpoint that was read. Its signatures are not verified yet. */
export interface Checkpoint extends TreeHead {
  /** The note text, with its last newline. */
  readonly text: string;
  /** The signature lines, without newlines. */
  readonly lines: readonly string[];
}

/** At least three lines of text without control characters, an empty line, and up to 64 signature lines. */
const NOTE = /^((?:[^\p{Cc}]+\n){3,})\n((?:— \S+ [A-Za-z0-9+/]+={0,2}\n){1,64})$/u;
const HEAD = /^([^\n]+)\n(0|[1-9]\d{0,14})\n([A-Za-z0-9+/]{43}=)\n/u;
const SIGNATURE = /^— (\S+) (\S+)$/u;

/** Reads a checkpoint. @throws {NoteInvalid} */
export function checkpointIn(note: string): Checkpoint {
  const [, text = '', lines = ''] = NOTE.exec(note) ?? [];
  const [, origin, size, root = ''] = HEAD.exec(text) ?? [];
  if (origin === undefined || !note.isWellFormed()) throw new NoteInvalid('it is no signed checkpoint');
  return { origin, size: Number(size), root: Buffer.from(root, 'base64'), text, lines: lines.slice(0, -1).split('\n') };
}

/**
 * The line by which a key has signed a checkpoint.
 *
 * @throws {NoteInvalid} it has not, or its signature is wrong
 */
export function signatureLine({ text, lines }: Pick<Checkpoint, 'text' | 'lines'>, key: VerifierKey): string {
  for (const line of lines) {
    const [, name = '', base64 = ''] = SIGNATURE.exec(line) ?? [];
    const bytes = Buffer.from(base64, 'base64');
    if (name !== key.name || !bytes.subarray(0, 4).equals(keyId(key))) continue;
    // A witness signs the time too, which is in front of its signature.
    const [at, before] = key.type === OF_WITNESS ? [12, `cosignature/v1\ntime ${timeIn(bytes)}\n`] : [4, ''];
    const signature = bytes.subarray(at);
    if (signature.length === 64 && verify(null, Buffer.from(before + text), publicKey(key), signature)) return line;
    throw new NoteInvalid(`the signature of "${key.name}" is wrong`);
  }
  throw new NoteInvalid(`it has no signature of the key ${vkeyText(key)}`);
}

/** When a witness has signed, in milliseconds since 1970. @param line its signature line */
export function cosignedAtMs(line: string): number {
  const [, , base64 = ''] = SIGNATURE.exec(line) ?? [];
  return Number(timeIn(Buffer.from(base64, 'base64'))) * 1_000;
}

/** The time of a cosignature, in seconds since 1970. */
function timeIn(bytes: Buffer): bigint {
  return bytes.length < 12 ? 0n : bytes.readBigUInt64BE(4);
}

function publicKey({ key }: VerifierKey): KeyObject {
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') } });
}
