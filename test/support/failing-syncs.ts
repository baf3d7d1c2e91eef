/** Lets a test make syncs fail, by a preloaded library that a C compiler builds. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SOURCE = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

static int sync_or_fail(long call, int fd) {
  const char *flag = getenv("SYNCS_FAIL_AT");
  if (flag == NULL || access(flag, F_OK) != 0) return (int)syscall(call, fd);
  char link[64], path[4096] = "", line[4200];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
  int length = snprintf(line, sizeof line, "%s\\n", path);
  int out = open(flag, O_WRONLY | O_APPEND);
  if (out >= 0 && write(out, line, length) < 0) abort();
  if (out >= 0) close(out);
  errno = EIO;
  return -1;
}

int fdatasync(int fd) { return sync_or_fail(SYS_fdatasync, fd); }
int fsync(int fd) { return sync_or_fail(SYS_fsync, fd); }
`;

export interface FailingSyncs {
  /** Environment of the process whose syncs fail. */
  readonly env: Readonly<Record<string, string>>;
  /** Makes every later sync fail. */
  begin(): void;
  /** Files whose sync was tried and failed, in order. */
  tried(): readonly string[];
}

/** Defines tests that need failing syncs, or prints a line if the library cannot be built. */
export function onFailingSyncs(define: () => void): void {
  if (process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0) define();
  else process.stderr.write('Skipped the tests of failed syncs: no C compiler\n');
}

/** Builds the library in a folder. */
export function failingSyncs(folder: string): FailingSyncs {
  const [source, library, flag] = ['syncs.c', 'syncs.so', 'syncs-fail'].map((name) => join(folder, name));
  if (source === undefined || library === undefined || flag === undefined) throw new Error('No names');
  writeFileSync(source, SOURCE);
  const made = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
  return {
    env: { LD_PRELOAD: library, SYNCS_FAIL_AT: flag },
    begin: () => writeFileSync(flag, ''),
    tried: () => (existsSync(flag) ? readFileSync(flag, 'utf8').split('\n').slice(0, -1) : []),
  };
}
