/** Ways to damage a SQLite file: pages by themselves, ranges of pages, and cuts. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import type { RunningService } from './running-service.js';
import { seededRandom } from './seeded-random.js';
import { IS_SOAK, sample } from './soak.js';

export const PAGE = 4_096;

type Bytes = Buffer<ArrayBuffer>;

/** A way to change some bytes of a file. */
const KINDS = {
  zeroes: (bytes: Bytes) => bytes.fill(0),
  'random bytes': (bytes: Bytes, random: () => number) => bytes.forEach((_, at) => (bytes[at] = random() * 256)),
} as const;

type Kind = keyof typeof KINDS;

const BOTH = Object.keys(KINDS) as readonly Kind[];

export interface Damage {
  readonly title: string;
  readonly apply: (file: Bytes, random: () => number) => Bytes;
}

function overwritten(kind: Kind, from: number, to: number): Damage {
  return {
    title: `${kind} from ${from} to ${to}`,
    apply(file, random) {
      KINDS[kind](file.subarray(from, to), random);
      return file;
    },
  };
}

export function cut(length: number): Damage {
  return { title: `cut to ${length}`, apply: (file) => file.subarray(0, length) };
}

/** Changes bytes in each way in the soak test, otherwise in one way, which alternates. */
function ways(at: number, [from, to]: readonly [number, number]): readonly Damage[] {
  return (IS_SOAK ? BOTH : [BOTH[at % 2] ?? 'zeroes']).map((kind) => overwritten(kind, from, to));
}

/** Pages by themselves, one of `every`. */
export function pagesOf(size: number, every: number): readonly Damage[] {
  return Array.from({ length: Math.ceil(size / PAGE / every) }, (_, at) => at).flatMap((at) =>
    ways(at, [at * every * PAGE, (at * every + 1) * PAGE]),
  );
}

/** Ranges of pages, and cuts at the end of a page: of every page in the soak test. */
export function rangesOf(size: number): readonly Damage[] {
  const half = Math.floor(size / PAGE / 2) * PAGE;
  const cuts = IS_SOAK ? Array.from({ length: size / PAGE }, (_, page) => page * PAGE) : [half];
  const ranges = [
    [half, size],
    [PAGE, half],
    [0, size],
    [half, half + 3 * PAGE],
  ] as const;
  // The number of pages also selects the way, so that files of different sizes get different damage.
  return [...sample(ranges, 2).flatMap((range, at) => ways(at + size / PAGE, range)), ...cuts.map(cut)];
}

/** Damages a view that the service has open. A write by another connection makes the service read its pages again. */
export function damageOpen(file: string, apply: Damage['apply'], random: () => number): void {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA busy_timeout = 10000; INSERT OR REPLACE INTO meta VALUES ('touched', '');
    PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
  writeFileSync(file, apply(readFileSync(file), random));
}

export interface WhileOpen {
  readonly file: string;
  readonly seed: number;
  readonly withService: (act: (service: RunningService) => Promise<void>) => Promise<void>;
  readonly check: (service: RunningService, title: string) => Promise<unknown>;
}

/**
 * Damages a view again and again while a service has it open. If the service does not meet the damage, continues with
 * another service on an intact file.
 */
export async function damageWhileOpen(
  damages: readonly Damage[],
  { file, seed, withService, check }: WhileOpen,
): Promise<void> {
  const random = seededRandom(seed);
  const whole = readFileSync(file);
  const left = [...damages];
  while (left.length > 0) {
    for (const journal of ['-wal', '-shm']) rmSync(file + journal, { force: true });
    writeFileSync(file, whole);
    await withService(async (service) => {
      for (let isMet = true; isMet;) {
        const next = left.shift();
        if (next === undefined) return;
        const known = service.faults.length;
        damageOpen(file, next.apply, random);
        await check(service, next.title);
        isMet = service.faults.length > known;
      }
    });
  }
}
