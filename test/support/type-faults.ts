/** What the compiler says of a project, for tests that make one: the native one, which takes a third of the other's time. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const OXLINT = fileURLToPath(new URL('../../../node_modules/oxlint/bin/oxlint', import.meta.url));
const TYPES_ONLY = fileURLToPath(new URL('../../../test/support/types-only.oxlintrc.json', import.meta.url));

/** The faults of the files in a folder, by its own `tsconfig.json`; empty: there are none. That there are no files is one. */
export function typeFaults(folder: string): Promise<string> {
  return new Promise((resolve) => {
    const words = [OXLINT, '--format', 'unix', '--config', TYPES_ONLY, folder];
    execFile(process.execPath, words, (error, stdout, stderr) => resolve(error === null ? '' : `${stdout}${stderr}`));
  });
}
