/**
 * The ledger of a service, folded and compared with its checkpoints at the start, and what needs it: the erasures and the
 * retention.
 */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.js';
import { withoutSecrets } from '../config-values.js';
import { ConfigInvalid } from '../errors.js';
import { ACCEPT_LOSS, LogUnreadable, lastEvent } from '../eventlog/port.js';
import type { LedgerOfService } from '../http/route.js';
import type { Witness } from '../ledger/checkpoints.js';
import { Checkpoints } from '../ledger/checkpoints.js';
import { LEDGER_STREAM, entriesIn, entryOf, leafOf } from '../ledger/events.js';
import { Ledger } from '../ledger/ledger.js';
import type { NoteSigner } from '../ledger/note.js';
import { NoteInvalid, OF_WITNESS, newKeyPem, noteSigner, verifierKey, vkeyText } from '../ledger/note.js';
import { readUpToDate, readUpToDateUntil } from '../projections/read-up-to-date.js';
import { settledWithin } from '../system/async/deadline.js';
import { boundedText, reasonOf } from '../system/untrusted.js';
import type { Context } from './context.js';
import type { ContextDeps } from './context-deps.js';
import { Erasures } from './erasures.js';
import { startRetention } from './retention.js';

/** File in DATA_DIR that allows one start on a ledger that contradicts its newest checkpoint (`council check --accept-loss`). */
export const ACCEPTED_FILE = 'ledger-loss-accepted';
/** File in DATA_DIR with the key of the embedded log's ledger. */
const KEY_FILE = 'ledger-key.pem';
/** How long a witness may take, in milliseconds, and the longest answer that is read, in bytes. */
const WITNESS_MS = 15_000;
const MAX_ANSWER_BYTES = 16 * 1024;

/** How long a stop waits for the last leaves and their checkpoint, in milliseconds. */
const MAX_FINISH_MS = 3_000;

/** How long a start waits for the erasures that a crash has cut off, in milliseconds: the views may have much to fold first. */
const MAX_RECOVERY_MS = 10_000;

export interface LedgerService extends LedgerOfService {
  readonly erasures: Erasures;
  stop(): Promise<void>;
}

interface LedgerServiceDeps extends ContextDeps {
  /** Forgets what webhooks and traces hold of an erased run. */
  readonly forget: (runId: string) => void;
}

/**
 * Folds the ledger, compares it with its newest checkpoint, and starts to add leaves, to sign checkpoints, to complete the
 * erasures that a crash has cut off, and to erase what the retention does not keep.
 *
 * @throws {LogUnreadable} it contradicts its newest checkpoint
 * @throws {ConfigInvalid} the key or a witness cannot be used
 * @throws {LedgerCorrupt | LogUnavailable} it cannot be read
 */
export async function startLedger(context: Context, config: Config, deps: LedgerServiceDeps): Promise<LedgerService> {
  const { log, instanceId, members, projector, history } = context;
  const { system, logger, forget } = deps;
  const { intervalMs } = config.ledger;
  const origin = config.ledger.origin ?? `council-run-service/${await log.identity()}`;
  const signer = signerOf(origin, config, deps);
  const witnesses = config.ledger.witnesses.map(witnessOf);
  const onFault = (err: unknown): void => logger.error({ err }, 'ledger: failed to add leaves; trying again');
  const erasedAs = history.erasedAs.bind(history);
  const endedWithoutLeaf = (max: number, signal: AbortSignal): Promise<readonly string[]> =>
    readUpToDateUntil({ log, projector }, () => history.endedWithoutLeaf(max), signal);
  const ledger = new Ledger({ log, system, members, projector, endedWithoutLeaf, erasedAs, onFault });
  const rules = { origin, signer, intervalMs, witnesses, post };
  const checkpoints = new Checkpoints({ log, system, instanceId, logger, ledger, members, ...rules });
  projector.subscribe(ledger, checkpoints);
  // In this order: the ledger is then folded as far as each known checkpoint covers, also of an instance that signs meanwhile.
  await checkpoints.load();
  await ledger.fold();
  const loss = await checkpoints.loss();
  if (!isAccepted(loss, join(deps.dataDir.path, ACCEPTED_FILE))) {
    const { eventStore } = config;
    const file = eventStore === null ? deps.dataDir.logFile : withoutSecrets(eventStore.url);
    throw new LogUnreadable({ file, reason: `${loss}: ${ACCEPT_LOSS}` });
  }
  const erasures = new Erasures({ ...context, ledger, forget, system, logger });
  projector.subscribe(erasures);
  await settledWithin(erasures.recover(), { system, maxMs: MAX_RECOVERY_MS });
  ledger.start();
  checkpoints.start();
  const retention = startRetention({ erasures, history, members, days: config.retentionDays, system, logger });
  return {
    tree: ledger.tree,
    entries: (tile, width) => entriesIn(log, tile, width),
    erasures,
    checkpoints,
    origin,
    intervalMs,
    vkey: signer && vkeyText(signer.key),
    async leafOf(runId) {
      const index = await readUpToDate({ log, projector, system }, () => history.leafOf(runId));
      const event = index === null ? null : await lastEvent(log, LEDGER_STREAM, index);
      if (event === null) return null;
      const leaf = leafOf(event);
      return leaf.kind === 'run' && leaf.runId === runId
        ? { index: event.revision, leaf, entry: entryOf(event) }
        : null;
    },
    async stop() {
      await retention.stop();
      await erasures.stop();
      // What the log does not take in time is added at the next start.
      const finishing = ledger.finish().then(() => checkpoints.finish());
      await settledWithin(finishing, { system, maxMs: MAX_FINISH_MS });
      await ledger.stop();
      await checkpoints.stop();
    },
  };
}

/** What signs checkpoints, or null if nothing does: on a server's log without a key for all instances. */
function signerOf(
  origin: string,
  { eventStore, ledger: { keyFile } }: Config,
  { dataDir, logger }: ContextDeps,
): NoteSigner | null {
  if (eventStore !== null && keyFile === null) {
    logger.info(
      {},
      'ledger: no checkpoints are signed on EventStoreDB without LEDGER_KEY_FILE, the same for all instances',
    );
    return null;
  }
  const file = keyFile ?? join(dataDir.path, KEY_FILE);
  try {
    // A kill may have left an empty file.
    if (keyFile === null && !statSync(file, { throwIfNoEntry: false })?.size)
      writeFileSync(file, newKeyPem(), { mode: 0o600, flush: true });
    return noteSigner(origin, readFileSync(file, 'utf8'));
  } catch (error) {
    const accepted = `a file with an Ed25519 key in PKCS#8 PEM (${reasonOf(error)})`;
    throw new ConfigInvalid({ variable: 'LEDGER_KEY_FILE', value: file, accepted });
  }
}

/** @throws {ConfigInvalid} */
function witnessOf({ vkey, url }: Config['ledger']['witnesses'][number]): Witness {
  try {
    return { key: verifierKey(vkey, OF_WITNESS), url };
  } catch (error) {
    if (!(error instanceof NoteInvalid)) throw error;
    throw new ConfigInvalid({
      variable: 'LEDGER_WITNESSES',
      value: vkey,
      accepted: `lines "<vkey> <url>" (${error.message})`,
    });
  }
}

/**
 * Whether the service may start. A loss that an operator has accepted is written into the file, so that it accepts no other one.
 *
 * @param loss what the ledger has lost, or null
 */
function isAccepted(loss: string | null, file: string): boolean {
  if (loss === null) {
    rmSync(file, { force: true });
    return true;
  }
  if (!existsSync(file)) return false;
  const accepted = readFileSync(file, 'utf8');
  if (accepted === '') writeFileSync(file, loss);
  return accepted === '' || accepted === loss;
}

/** Posts to a witness, and reads its answer. */
async function post(
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly body: string }> {
  const until = AbortSignal.any([signal, AbortSignal.timeout(WITNESS_MS)]);
  const response = await fetch(url, { method: 'POST', body, signal: until, redirect: 'error' });
  return { status: response.status, body: await boundedText(response, MAX_ANSWER_BYTES) };
}
