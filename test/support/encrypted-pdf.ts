/** PDFs under the standard security handler: ISO 32000-1, section 7.6, and for AES-256 ISO 32000-2, section 7.6.4. */
import { createCipheriv, createHash } from 'node:crypto';
import { fileOf, streamOf } from './pdf-writer.js';

export const CIPHERS = ['aes-256', 'rc4-40', 'aes-128', 'rc4-128'] as const;
type Cipher = (typeof CIPHERS)[number];

export interface Encryption {
  readonly cipher: Cipher;
  /** The user password; a file whose user password is empty opens without one. The owner password is `owner`. */
  readonly password: string;
  readonly lines: readonly string[];
}

interface Security {
  /** The key of the file. */
  readonly key: Buffer;
  /** Entries of the encryption dictionary. */
  readonly entries: string;
}

const OWNER_PASSWORD = 'owner';
const PADDING = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex');
const ID = Buffer.from('0123456789abcdef');
/** Permission bits that allow printing only. */
const PERMISSIONS = -3_904;

/** A page of these lines, encrypted. */
export function encryptedPdf({ cipher, password, lines }: Encryption): Buffer {
  const { key, entries } = cipher === 'aes-256' ? security256(password) : security(cipher, password);
  const content = Buffer.from(
    lines.map((line, index) => `BT /F1 10 Tf 50 ${700 - 12 * index} Td (${line}) Tj ET`).join('\n'),
  );
  return fileOf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Count 1 /Kids [3 0 R] >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
      streamOf(sealed(content, objectKey(key, 4, cipher), cipher), { isCompressed: false }),
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      `<< /Filter /Standard /P ${PERMISSIONS} ${entries} >>`,
    ],
    `/Encrypt 6 0 R /ID [<${ID.toString('hex')}> <${ID.toString('hex')}>]`,
  );
}

function security(cipher: Exclude<Cipher, 'aes-256'>, password: string): Security {
  const { revision, length, version } = {
    'rc4-40': { revision: 2, length: 5, version: 1 },
    'rc4-128': { revision: 3, length: 16, version: 2 },
    'aes-128': { revision: 4, length: 16, version: 4 },
  }[cipher];
  const owner = rounds(padded(OWNER_PASSWORD), padded(password), revision, length);
  const key = fileKey(password, owner, revision, length);
  const user =
    revision === 2
      ? rc4(key, PADDING)
      : Buffer.concat([rounded(key, md5(PADDING, ID), (each, index) => each ^ index), Buffer.alloc(16)]);
  const filters = version === 4 ? cryptFilter('/AESV2', 16) : '';
  return {
    key,
    entries: `/V ${version} /R ${revision} /Length ${length * 8} ${hexEntries({ O: owner, U: user })} ${filters}`,
  };
}

/** Revision 6. Salts and key may be any bytes. */
function security256(password: string): Security {
  const key = createHash('sha256').update('a key of 256 bits').digest();
  const [validation, wrapping] = [Buffer.from('validate'), Buffer.from('key salt')];
  const wrapped = (secret: string, user: Buffer): Buffer => {
    const aes = createCipheriv('aes-256-cbc', hash256(secret, wrapping, user), Buffer.alloc(16)).setAutoPadding(false);
    return Buffer.concat([aes.update(key), aes.final()]);
  };
  const checked = (secret: string, user: Buffer): Buffer =>
    Buffer.concat([hash256(secret, validation, user), validation, wrapping]);
  const none = Buffer.alloc(0);
  const user = checked(password, none);
  const permissions = Buffer.from('....\xff\xff\xff\xffTadb....', 'latin1');
  permissions.writeInt32LE(PERMISSIONS);
  const sealedPermissions = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false).update(permissions);
  const values = {
    U: user,
    UE: wrapped(password, none),
    Perms: sealedPermissions,
    O: checked(OWNER_PASSWORD, user),
    OE: wrapped(OWNER_PASSWORD, user),
  };
  return { key, entries: `/V 5 /R 6 /Length 256 ${hexEntries(values)} ${cryptFilter('/AESV3', 32)}` };
}

/** Algorithm 2.B. */
function hash256(password: string, salt: Buffer, user: Buffer): Buffer {
  let key = createHash('sha256').update(password).update(salt).update(user).digest();
  for (let [round, last] = [0, 0]; round < 64 || last > round - 32; round += 1) {
    const once = Buffer.concat([Buffer.from(password), key, user]);
    const aes = createCipheriv('aes-128-cbc', key.subarray(0, 16), key.subarray(16, 32)).setAutoPadding(false);
    const text = aes.update(Buffer.concat(Array.from({ length: 64 }, () => once)));
    const remainder = text.subarray(0, 16).reduce((sum, byte) => sum + byte, 0) % 3;
    key = createHash(['sha256', 'sha384', 'sha512'][remainder] ?? '')
      .update(text)
      .digest();
    last = text.at(-1) ?? 0;
  }
  return key.subarray(0, 32);
}

function cryptFilter(method: string, length: number): string {
  return `/CF << /StdCF << /CFM ${method} /Length ${length} /AuthEvent /DocOpen >> >> /StmF /StdCF /StrF /StdCF`;
}

function hexEntries(values: Readonly<Record<string, Buffer>>): string {
  return Object.entries(values)
    .map(([name, bytes]) => `/${name} <${bytes.toString('hex')}>`)
    .join(' ');
}

function sealed(content: Buffer, key: Buffer, cipher: Cipher): Buffer {
  if (cipher !== 'aes-128' && cipher !== 'aes-256') return rc4(key, content);
  const vector = md5(content);
  const aes = createCipheriv(`${cipher}-cbc`, key, vector);
  return Buffer.concat([vector, aes.update(content), aes.final()]);
}

/** The owner's entry: the user's password, encrypted with the owner's. */
function rounds(owner: Buffer, user: Buffer, revision: number, length: number): Buffer {
  let hash = md5(owner);
  if (revision > 2) for (let round = 0; round < 50; round += 1) hash = md5(hash);
  const key = hash.subarray(0, length);
  return revision === 2 ? rc4(key, user) : rounded(key, user, (each, index) => each ^ index);
}

/** Twenty rounds of RC4, each with another key. */
function rounded(key: Buffer, data: Buffer, change: (byte: number, round: number) => number): Buffer {
  let result = data;
  for (let round = 0; round < 20; round += 1) result = rc4(Buffer.from(key.map((byte) => change(byte, round))), result);
  return result;
}

function fileKey(password: string, owner: Buffer, revision: number, length: number): Buffer {
  const permissions = Buffer.alloc(4);
  permissions.writeInt32LE(PERMISSIONS);
  let hash = md5(padded(password), owner, permissions, ID);
  if (revision > 2) for (let round = 0; round < 50; round += 1) hash = md5(hash.subarray(0, length));
  return hash.subarray(0, length);
}

function objectKey(key: Buffer, object: number, cipher: Cipher): Buffer {
  if (cipher === 'aes-256') return key;
  const salt = cipher === 'aes-128' ? Buffer.from('sAlT') : Buffer.alloc(0);
  return md5(key, Buffer.from([object, 0, 0, 0, 0]), salt).subarray(0, Math.min(16, key.length + 5));
}

function padded(password: string): Buffer {
  return Buffer.concat([Buffer.from(password), PADDING]).subarray(0, 32);
}

function md5(...parts: readonly Buffer[]): Buffer {
  return createHash('md5').update(Buffer.concat(parts)).digest();
}

/** Implemented here, because Node no longer offers it. */
function rc4(key: Buffer, data: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, index) => index);
  const at = (index: number): number => state[index & 255] ?? 0;
  const swap = (one: number, other: number): void => {
    [state[one & 255], state[other & 255]] = [at(other), at(one)];
  };
  let j = 0;
  for (let i = 0; i < 256; i += 1) swap(i, (j = (j + at(i) + (key[i % key.length] ?? 0)) & 255));
  let i = 0;
  j = 0;
  return Buffer.from(
    data.map((byte) => {
      i = (i + 1) & 255;
      swap(i, (j = (j + at(i)) & 255));
      return byte ^ at(at(i) + at(j));
    }),
  );
}
