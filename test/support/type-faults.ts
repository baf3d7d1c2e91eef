/** What the compiler says of a project, for tests that make one: the native one, which takes a third of the other's time. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const OXLINT = fileURLToPath(new URL('../../../node_modules/oxlint/bin/oxlint', import.meta.url));
const TYPES_ONLY = fileURLToPath(new URL('../../../test/support/types-only.oxlintrc.json', import.meta.url));

/**
 * The faults of a file, or of those in a folder, by the `tsconfig.json` beside it; empty: none. No file at all is one, and
 * so is a compiler that was killed.
 */
export function typeFaults(path: string): Promise<string> {
  return new Promise((resolve) => {
    const words = [OXLINT, '--format', 'unix', '--config', TYPES_ONLY, path];
    execFile(process.execPath, words, (error, stdout, stderr) =>
      resolve(error === null ? '' : `${stdout}${stderr}` || error.message),
    );
  });
}
