/** A witness after the text of C2SP tlog-witness. It imports nothing of the service. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { Key } from './verifier.js';
import { isConsistent, openNote, parseCheckpoint, sha256 } from './verifier.js';

export interface FakeWitness {
  /** Submission prefix. */
  readonly url: string;
  readonly vkey: string;
  /** What it has cosigned last, by origin. */
  readonly seen: Map<string, { size: number; root: Buffer }>;
  /** Statuses of its answers. */
  readonly statuses: readonly number[];
  /** Keys of the logs that it trusts, by origin; without one it trusts the first that it sees. */
  trust(key: Key): void;
  /** Receives each request without an answer, from now on. */
  hang(): void;
  add(body: string): { readonly status: number; readonly body: string };
  stop(): Promise<void>;
}

export async function startWitness(name: string): Promise<FakeWitness> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const jwk = createPublicKey(createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }))).export({
    format: 'jwk',
  });
  const bytes = Buffer.concat([Buffer.of(4), Buffer.from(jwk.x ?? '', 'base64url')]);
  const id = sha256(Buffer.from(`${name}\n`), bytes).subarray(0, 4);
  const trusted = new Map<string, Key>();
  const seen = new Map<string, { size: number; root: Buffer }>();
  const statuses: number[] = [];
  let hangs = false;

  const refusal = (status: number, body = '') => ({ status, body });
  const add = (text: string): { readonly status: number; readonly body: string } => {
    const at = text.indexOf('\n\n');
    const [oldLine = '', ...lines] = text.slice(0, at).split('\n');
    const note = text.slice(at + 2);
    const old = Number(/^old (0|[1-9]\d*)$/.exec(oldLine)?.[1] ?? Number.NaN);
    const proof = lines.map((line) => Buffer.from(line, 'base64'));
    if (Number.isNaN(old) || proof.length > 63 || proof.some(({ length }) => length !== 32)) return refusal(400);
    const key = trusted.get(note.slice(0, note.indexOf('\n')));
    if (key === undefined) return refusal(404);
    let body: string;
    try {
      body = openNote(note, key).text;
    } catch {
      return refusal(403);
    }
    return consistent(parseCheckpoint(body), { old, proof, body });
  };
  const consistent = (
    { origin, size, root }: ReturnType<typeof parseCheckpoint>,
    { old, proof, body }: { old: number; proof: readonly Buffer[]; body: string },
  ): { readonly status: number; readonly body: string } => {
    if (old > size) return refusal(400);
    const last = seen.get(origin) ?? { size: 0, root: sha256() };
    if (last.size !== old) return refusal(409, `${last.size}\n`);
    if (!isConsistent(proof, last, { size, root })) return refusal(422);
    seen.set(origin, { size, root });
    const time = Math.floor(Date.now() / 1_000);
    const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${time}\n${body}`), privateKey);
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(time));
    return { status: 200, body: `— ${name} ${Buffer.concat([id, stamp, signature]).toString('base64')}\n` };
  };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (hangs) return;
      const isCall = request.method === 'POST' && request.url === '/w/add-checkpoint';
      const { status, body } = isCall ? add(Buffer.concat(chunks).toString()) : refusal(404);
      statuses.push(status);
      response.writeHead(status, { 'Content-Type': status === 409 ? 'text/x.tlog.size' : 'text/plain' }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/w`,
    vkey: `${name}+${id.toString('hex')}+${bytes.toString('base64')}`,
    seen,
    statuses,
    trust: (key) => void trusted.set(key.name, key),
    hang: () => (hangs = true),
    add,
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
