/** A text in the user's own editor. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Opens a text in an editor and waits for its end. Standard output is not the editor's: it belongs to the final draft.
 *
 * @param command a shell command that takes a file, as `$EDITOR` holds it
 * @param isTerminal whether standard input is a terminal, so that the editor may read it
 * @returns the new text, null when it is empty or as it was
 * @throws {Error} when the editor fails
 */
export async function editText(text: string, command: string, isTerminal: boolean): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'council-draft-'));
  const file = join(folder, 'draft.md');
  try {
    await writeFile(file, text);
    const editor = spawn('/bin/sh', ['-c', `${command} "$1"`, 'editor', file], {
      stdio: [isTerminal ? 'inherit' : 'ignore', process.stderr, 'inherit'],
    });
    await once(editor, 'close');
    if (editor.exitCode !== 0) throw new Error(`The editor "${command}" failed: nothing is decided`);
    const edited = await readFile(file, 'utf8');
    // Editors end the last line; the draft's own end is kept.
    const result = text.endsWith('\n') ? edited : edited.replace(/\n$/, '');
    return result === text || result.trim() === '' ? null : result;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
