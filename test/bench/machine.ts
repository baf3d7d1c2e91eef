/** The machine that figures are measured on. */
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { DatabaseSync } from '@photostructure/sqlite';

/** File systems by their type number in statfs(2). */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext4',
  0x58465342: 'XFS',
  0x9123683e: 'Btrfs',
  0x794c7630: 'overlay',
  0x01021994: 'tmpfs: durable writes cost nothing',
};

/** One line with processor, cores, memory, system, versions, file system, load average and date. */
export function machineLine(): string {
  const memoryGb = Math.round(totalmem() / 1024 ** 3);
  return [
    `${cpuModel()}, ${availableParallelism()} cores, ${memoryGb} GB`,
    `${type()} ${release()}`,
    `Node ${process.versions.node}`,
    `SQLite ${sqliteVersion()}`,
    `data in ${tmpdir()} (${fileSystemOf(tmpdir())})`,
    `load average before ${(loadavg()[0] ?? 0).toFixed(1)}`,
    new Date().toISOString().slice(0, 10),
  ].join(' · ');
}

function cpuModel(): string {
  return cpus()[0]?.model.trim() ?? 'unknown processor';
}

function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:');
  try {
    const row: unknown = database.prepare('SELECT sqlite_version() AS version').get();
    return typeof row === 'object' && row !== null && 'version' in row ? String(row.version) : 'of unknown version';
  } finally {
    database.close();
  }
}

function fileSystemOf(folder: string): string {
  const kind = FILE_SYSTEMS[statfsSync(folder).type];
  return kind ?? 'another file system';
}

/**
 * Resident memory of a process in MB, now (`VmRSS`) or at its peak (`VmHWM`), or null on a system without /proc.
 */
export function residentMb(pid: number, field: 'VmRSS' | 'VmHWM'): number | null {
  try {
    const kib = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? null : (Number(kib) * 1024) / 1e6;
  } catch {
    return null;
  }
}

/** Processor time of all threads of a process so far, in steps of 10 ms, or null on a system without /proc. */
export function processorMs(pid: number): number | null {
  try {
    // The name, in brackets, may hold spaces: proc(5).
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}
