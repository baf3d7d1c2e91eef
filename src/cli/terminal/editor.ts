/** A text in the user's own editor. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface EditorChoice {
  /** A shell command that takes a file, as `$EDITOR` holds it; null when it holds none: `vi`, on a terminal. */
  readonly command: string | null;
  /** Whether there is a terminal that the editor may have. */
  readonly isTerminal: boolean;
}

/**
 * Opens a text in an editor and waits for its end. Standard output is not the editor's: it belongs to the final draft.
 *
 * @returns the new text, null when it is empty or as it was
 * @throws {Error} when there is no editor, or it fails
 */
export async function editText(text: string, choice: EditorChoice): Promise<string | null> {
  const { isTerminal } = choice;
  const command = choice.command ?? (isTerminal ? 'vi' : null);
  if (command === null) throw new Error('Cannot edit the draft: there is no terminal for vi, and EDITOR is not set');
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
