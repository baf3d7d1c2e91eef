/** Runs the compiler on a project that a test writes. Uses the native compiler, which takes a third of the time. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const OXLINT = fileURLToPath(new URL('../../../node_modules/oxlint/bin/oxlint', import.meta.url));
const TYPES_ONLY = fileURLToPath(new URL('../../../test/support/types-only.oxlintrc.json', import.meta.url));

/**
 * The type errors of a file, or of the files in a folder, with the `tsconfig.json` next to it; empty if there are none.
 * A missing file and a killed compiler count as errors.
 */
export function typeFaults(path: string): Promise<string> {
  return new Promise((resolve) => {
    const words = [OXLINT, '--format', 'unix', '--config', TYPES_ONLY, path];
    execFile(process.execPath, words, (error, stdout, stderr) =>
      resolve(error === null ? '' : `${stdout}${stderr}` || error.message),
    );
  });
}
