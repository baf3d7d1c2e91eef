/** PDFs under the standard security handler, ISO 32000-1, section 7.6. */
import { createCipheriv, createHash } from 'node:crypto';
import { fileOf, streamOf } from './pdf-writer.js';

export interface Encryption {
  readonly cipher: 'rc4-40' | 'rc4-128' | 'aes-128';
  /** What opens it; empty: everybody may. */
  readonly password: string;
  readonly lines: readonly string[];
}

const PADDING = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex');
const ID = Buffer.from('0123456789abcdef');
/** Everything but printing is forbidden. */
const PERMISSIONS = -3_904;

/** A page of lines that nobody reads without the key. */
export function encryptedPdf({ cipher, password, lines }: Encryption): Buffer {
  const { revision, length, version } = {
    'rc4-40': { revision: 2, length: 5, version: 1 },
    'rc4-128': { revision: 3, length: 16, version: 2 },
    'aes-128': { revision: 4, length: 16, version: 4 },
  }[cipher];
  const owner = rounds(padded('owner'), padded(password), revision, length);
  const key = fileKey(password, owner, revision, length);
  const user =
    revision === 2
      ? rc4(key, PADDING)
      : Buffer.concat([rounded(key, md5(PADDING, ID), (each, index) => each ^ index), Buffer.alloc(16)]);
  const content = Buffer.from(
    lines.map((line, index) => `BT /F1 10 Tf 50 ${700 - 12 * index} Td (${line}) Tj ET`).join('\n'),
  );
  const filters =
    version === 4 ? '/CF << /StdCF << /CFM /AESV2 /Length 16 /AuthEvent /DocOpen >> >> /StmF /StdCF /StrF /StdCF' : '';
  return fileOf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Count 1 /Kids [3 0 R] >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
      streamOf(sealed(content, objectKey(key, 4, cipher), cipher), { isCompressed: false }),
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      `<< /Filter /Standard /V ${version} /R ${revision} /Length ${length * 8} /P ${PERMISSIONS} /O <${owner.toString('hex')}> /U <${user.toString('hex')}> ${filters} >>`,
    ],
    `/Encrypt 6 0 R /ID [<${ID.toString('hex')}> <${ID.toString('hex')}>]`,
  );
}

function sealed(content: Buffer, key: Buffer, cipher: Encryption['cipher']): Buffer {
  if (cipher !== 'aes-128') return rc4(key, content);
  const vector = md5(content);
  const aes = createCipheriv('aes-128-cbc', key, vector);
  return Buffer.concat([vector, aes.update(content), aes.final()]);
}

/** The owner's entry: the user's password under the owner's. */
function rounds(owner: Buffer, user: Buffer, revision: number, length: number): Buffer {
  let hash = md5(owner);
  if (revision > 2) for (let round = 0; round < 50; round += 1) hash = md5(hash);
  const key = hash.subarray(0, length);
  return revision === 2 ? rc4(key, user) : rounded(key, user, (each, index) => each ^ index);
}

/** Twenty rounds of RC4, the key another one in each. */
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

function objectKey(key: Buffer, object: number, cipher: Encryption['cipher']): Buffer {
  const salt = cipher === 'aes-128' ? Buffer.from('sAlT') : Buffer.alloc(0);
  return md5(key, Buffer.from([object, 0, 0, 0, 0]), salt).subarray(0, Math.min(16, key.length + 5));
}

function padded(password: string): Buffer {
  return Buffer.concat([Buffer.from(password), PADDING]).subarray(0, 32);
}

function md5(...parts: readonly Buffer[]): Buffer {
  return createHash('md5').update(Buffer.concat(parts)).digest();
}

/** Written out: the system's own no longer offers it. */
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
