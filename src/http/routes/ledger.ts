/** The routes of the ledger: its state, the files of C2SP tlog-tiles, and the proofs of runs. */
import type { RouterContext } from '@koa/router';
import { RequestRefused } from '../../api/problems.js';
import { proofText } from '../../ledger/proof.js';
import { TILE_WIDTH, leafHash } from '../../ledger/tree.js';
import { RunUnknown } from '../../run/errors.js';
import type { HttpContext, LedgerOfService, Route } from '../route.js';
import { parameterIn, runIdIn } from '../route.js';

export function ledgerRoutes(http: HttpContext): readonly Route[] {
  return [stateRoute(http), checkpointRoute(http), tileRoute(http), proofRoute(http)];
}

/** What all routes have in common. */
const LEDGER = { method: 'GET', access: 'read', tag: 'ledger' } as const;
const PLAIN = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
/** A checkpoint is replaced by the next; a full tile never changes. */
const CHANGES = { 'Cache-Control': 'no-cache' };
const NEVER_CHANGES = { 'Cache-Control': 'max-age=31536000, immutable' };

function stateRoute({ ledger: { tree, checkpoints, origin, vkey } }: HttpContext): Route {
  return {
    ...LEDGER,
    path: '/api/ledger',
    name: 'getLedger',
    summary: 'Returns the size and the root of the ledger, its newest checkpoint and its witnesses',
    success: { status: 200, description: 'The ledger', schema: 'ledger.json' },
    async handle() {
      const { newest, witnesses } = checkpoints;
      const state = { origin, size: tree.size, root: tree.root().toString('base64'), vkey };
      const checkpoint = newest && { size: newest.size, at: newest.at };
      return { status: 200, body: { ...state, checkpoint, witnesses } };
    },
  };
}

function checkpointRoute({ ledger: { checkpoints } }: HttpContext): Route {
  return {
    ...LEDGER,
    path: '/ledger/checkpoint',
    name: 'getLedgerCheckpoint',
    summary: 'Returns the newest checkpoint with its cosignatures (C2SP tlog-checkpoint)',
    success: { status: 200, description: 'A signed note', schema: null, mediaType: 'text/plain' },
    problems: [404],
    async handle() {
      const { note } = checkpoints;
      if (note === null) throw new RequestRefused('The ledger has no checkpoint yet', { status: 404 });
      return { status: 200, body: note, type: PLAIN, headers: CHANGES };
    },
  };
}

function tileRoute(http: HttpContext): Route {
  const { ledger } = http;
  return {
    ...LEDGER,
    path: '/ledger/tile/{level}/{+tile}',
    name: 'getLedgerTile',
    summary: 'Returns a tile of hashes, or of entries at the level `entries` (C2SP tlog-tiles)',
    description:
      '`tile` is the number in groups of three digits, such as `x001/x234/067`, for a partial tile with `.p/<width>`.',
    success: { status: 200, description: 'The tile', schema: null, mediaType: BYTES },
    problems: [404],
    async handle(ctx) {
      const tile = tileIn(ctx, ledger.tree.size);
      const parts = tile && (await http.withinDeadline(partsOf(tile, ledger)));
      if (tile === null || parts?.length !== tile.width)
        throw new RequestRefused(`The ledger has no tile "${ctx.path}"`, { status: 404 });
      const headers = tile.width === TILE_WIDTH ? NEVER_CHANGES : CHANGES;
      return { status: 200, body: Buffer.concat(parts), type: BYTES, headers };
    },
  };
}

interface TileAt {
  /** 0 to 63, or null for the entries. */
  readonly level: number | null;
  readonly number: number;
  /** Number of hashes or entries, 1 to 256. */
  readonly width: number;
}

/** The tile that a path names, or null if it names none or the tree is too small. */
function tileIn(ctx: RouterContext, size: number): TileAt | null {
  const [level, path] = [parameterIn(ctx, 'level'), parameterIn(ctx, 'tile')];
  const found = /^((?:x\d{3}\/){0,4}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(path);
  if (found === null || !/^(?:entries|\d|[1-5]\d|6[0-3])$/.test(level)) return null;
  const [, digits = '', width = String(TILE_WIDTH)] = found;
  const number = Number(digits.replaceAll(/[x/]/g, ''));
  // C2SP writes no group of zeros in front, and no partial tile of full width.
  if (/^x000/.test(digits) || (found[2] !== undefined && Number(width) >= TILE_WIDTH)) return null;
  const leavesOfEach = level === 'entries' ? 1 : TILE_WIDTH ** Number(level);
  if ((number * TILE_WIDTH + Number(width)) * leavesOfEach > size) return null;
  return { level: level === 'entries' ? null : Number(level), number, width: Number(width) };
}

async function partsOf({ level, number, width }: TileAt, of: LedgerOfService): Promise<readonly Buffer[]> {
  if (level !== null && level > 0) return of.tree.tile(level, number, width) ?? [];
  const entries = await of.entries(number, width);
  return entries.map((entry) => (level === 0 ? leafHash(entry) : withLength(entry)));
}

/** An entry with its length in front, 16 bits and big-endian. */
function withLength(entry: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(entry.length);
  return Buffer.concat([length, entry]);
}

function proofRoute(http: HttpContext): Route {
  return {
    ...LEDGER,
    path: '/api/runs/{run_id}/proof',
    name: 'getRunProof',
    summary: 'Returns the proof that the end of a run is in the ledger (C2SP tlog-proof)',
    description:
      '409 with `Retry-After` until a checkpoint covers the run, without it if the service signs none; 409 for a run that has not ended.',
    success: { status: 200, description: 'The proof', schema: null, mediaType: 'text/plain' },
    problems: [409],
    async handle(ctx) {
      const runId = runIdIn(ctx);
      const run = await http.withinDeadline(http.queries.find(runId));
      if (run === null) throw new RunUnknown({ runId });
      if (run.completedAt === null) throw new RequestRefused(`Run "${runId}" has not ended`, { status: 409 });
      const text = await http.withinDeadline(proofOf(runId, http));
      if (text !== null) return { status: 200, body: text, type: PLAIN };
      const { vkey, checkpoints, intervalMs } = http.ledger;
      const whyUnsigned = vkey === null ? 'LEDGER_KEY_FILE is not set' : checkpoints.fault;
      const detail = `No checkpoint of the ledger covers run "${runId}"`;
      if (whyUnsigned !== null)
        throw new RequestRefused(`${detail}: this service signs none: ${whyUnsigned}`, { status: 409 });
      const headers = { 'Retry-After': String(Math.ceil(intervalMs / 1_000)) };
      throw new RequestRefused(`${detail} yet`, { status: 409, headers });
    },
  };
}

/** The proof of a run by the newest checkpoint, or null if no checkpoint covers it. */
async function proofOf(runId: string, { ledger: { tree, checkpoints, leafOf } }: HttpContext): Promise<string | null> {
  const found = await leafOf(runId);
  const { note, covered } = checkpoints;
  if (found === null || note === null || found.index >= covered) return null;
  const { index, entry } = found;
  const path = await tree.inclusion(index, covered);
  return proofText({ entry, index, path }, note);
}
