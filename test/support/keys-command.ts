/** `council keys` in this process, as a user types it. */
import { keys } from '../../src/cli/commands/keys.js';

export interface Told {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it to its end. @param env all of its environment */
export async function councilKeys(words: readonly string[], env: NodeJS.ProcessEnv): Promise<Told> {
  const told = { stdout: '', stderr: '' };
  const write = (text: string | Uint8Array, done: () => void): void => {
    told.stdout += String(text);
    done();
  };
  const complain = (text: string): void => void (told.stderr += text);
  const code = await keys(words, { env, stdout: { write }, complain, signal: new AbortController().signal });
  return { code, ...told };
}
