/** Everything about a folder that writing to it would change: the bytes, sizes, modes and times of all that is in it. */
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
