/** The bytes, sizes, modes and times of all files of a folder: a write changes at least one of them. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function folderPrint(path: string): readonly string[] {
  const { mode, size, mtimeNs, ctimeNs, ino } = lstatSync(path, { bigint: true });
  const own = `${path} ${mode} ${ino} ${mtimeNs} ${ctimeNs}`;
  if (!lstatSync(path).isDirectory()) {
    return [`${own} ${size} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`];
  }
  const names = readdirSync(path).sort();
  return [`${own} ${names.join(' ')}`, ...names.flatMap((name) => folderPrint(join(path, name)))];
}
