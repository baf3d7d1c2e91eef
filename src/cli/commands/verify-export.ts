/** `council verify-export`: checks an export of a run against its proof, with no service and no database. */
import { readFileSync } from 'node:fs';
import type { VerifierKey } from '../../ledger/note.js';
import { OF_WITNESS, cosignedAtMs, signatureLine, verifierKey } from '../../ledger/note.js';
import { verifiedProof } from '../../ledger/proof.js';
import { nodeSystem } from '../../system/system.js';
import { fieldOf, reasonOf } from '../../system/untrusted.js';
import { bytesIn } from '../records/files.js';
import type { VerificationResult } from '../records/record.js';
import { inOneLine } from '../terminal/printer.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess } from './command.js';
import { HELP, execute, printLines } from './command.js';
import { ArgumentInvalid, UsageFault, VERIFIED } from './exit-codes.js';

const USAGE = `Usage: council verify-export FILE --proof P --vkey K [--witness W]

Checks an export of a run (council export; - is standard input) against its proof (GET /api/runs/RUN/proof): every hash, that
the end of the run is in the ledger, and that K has signed the checkpoint. It needs no service and no database.

  --proof P    file with the proof
  --vkey K     verifier key of the ledger, kept from an earlier day (GET /api/ledger)
  --witness W  verifier key of a witness that must have cosigned the checkpoint too
  --help       show this text

Exit code: 0 proven, 1 not proven, 2 wrong usage, or a file that cannot be read.`;

const OPTIONS = { ...HELP, proof: { type: 'string' }, vkey: { type: 'string' }, witness: { type: 'string' } } as const;

const SPEC = { usage: USAGE, options: OPTIONS, exitOnError: VERIFIED.cannotTell } as const;

export function verifyExport(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, SPEC, async ({ values, positionals: [file, ...more] }, { print }) => {
    const { proof, vkey, witness } = values;
    if (file === undefined || proof === undefined || vkey === undefined || more.length > 0)
      throw new UsageFault('A file, --proof and --vkey are needed');
    const key = keyIn(vkey, verifierKey);
    const witnessKey = witness === undefined ? null : keyIn(witness, (text) => verifierKey(text, OF_WITNESS));
    const { verifyExport: verify } = await import('../records/verification.js');
    const { sha256 } = nodeSystem();
    const record = await verify(bytesIn(file, here.stdin), { sha256, head: null, recorded: null });
    const fault = faultOf(record) ?? faultOfProof(textIn(proof), { record, key, witness: witnessKey });
    const say = printLines(print);
    if (typeof fault === 'string') await say(`not proven: ${inOneLine(fault)}`);
    else
      await say(
        `proven: run ${record.runId}, ${countOf(record.events, 'event')}, is leaf ${fault.index} of ${fault.origin}${fault.cosigned}`,
      );
    return typeof fault === 'string' ? VERIFIED.notValid : VERIFIED.valid;
  });
}

function keyIn(text: string, read: (text: string) => VerifierKey): VerifierKey {
  try {
    return read(text);
  } catch (error) {
    throw new UsageFault(reasonOf(error));
  }
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ArgumentInvalid({ subject: `the proof "${file}"`, reason: reasonOf(error) });
  }
}

/** Why a record is not valid, or null. */
function faultOf({ firstDifference, isValid }: VerificationResult): string | null {
  if (firstDifference !== null) return `event ${firstDifference.seq}: ${firstDifference.what}`;
  return isValid === true ? null : 'the run has not ended in this export';
}

interface Demands {
  readonly record: VerificationResult;
  readonly key: VerifierKey;
  /** Null if no witness must have cosigned. */
  readonly witness: VerifierKey | null;
}

/** The place that a proof proves. */
interface Proven {
  readonly index: number;
  readonly origin: string;
  /** Text about the witness; empty without one. */
  readonly cosigned: string;
}

/** Why a proof does not prove a valid record, or the place that it proves. */
function faultOfProof(text: string, { record, key, witness }: Demands): string | Proven {
  try {
    const { entry, index, checkpoint } = verifiedProof(text, key);
    const cosigned = witness === null ? '' : `, ${cosignedBy(witness, signatureLine(checkpoint, witness))}`;
    const leaf: unknown = JSON.parse(entry.toString());
    const isOfRun = fieldOf(leaf, 'kind') === 'run' && fieldOf(leaf, 'runId') === record.runId;
    if (!isOfRun) return 'the proof is of another run';
    const isSame = fieldOf(leaf, 'headHash') === record.headHash && fieldOf(leaf, 'events') === record.events;
    return isSame
      ? { index, origin: checkpoint.origin, cosigned }
      : 'the export is another record of the run than the one in the ledger';
  } catch (error) {
    return `the proof: ${reasonOf(error)}`;
  }
}

function cosignedBy({ name }: VerifierKey, line: string): string {
  return `cosigned by ${name} at ${new Date(cosignedAtMs(line)).toISOString()}`;
}
