/** The human's desk in God Mode: shows what waits, takes a word for it, line by line, from a terminal or a script. */
import { createInterface } from 'node:readline';
import type { ReadStream } from 'node:tty';
import type { GodModeState } from '../generated/schemas.js';
import type { Decision } from './driver.js';
import { mailbox } from './mailbox.js';

export interface Desk {
  /** What the human decides; null when nobody answers any more. */
  ask(state: GodModeState): Promise<Decision | null>;
  /** Whoever is being asked answers no more. May be called twice. */
  close(): void;
}

export interface DeskDeps {
  readonly input: ReadStream;
  readonly say: (text: string) => void;
  /** Lets the human change a text; null when it stays as it is. @throws {Error} when it cannot be edited */
  readonly edit: (text: string) => Promise<string | null>;
}

const QUESTION = 'approve, reject or edit?';

export function openDesk({ input, say, edit }: DeskDeps): Desk {
  // Not as a terminal: the system's own line editing leaves Ctrl-C a signal.
  const reader = createInterface({ input, terminal: false });
  const lines = mailbox<string>();
  reader.on('line', (line) => lines.put(line.trim()));
  reader.on('close', () => lines.end());

  const edited = async (draft: string): Promise<Decision | null> => {
    reader.pause();
    try {
      const text = await edit(draft);
      if (text !== null) return { action: 'modify', draft: text };
      say('The draft is unchanged: nothing is decided.');
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    } finally {
      reader.resume();
    }
    return null;
  };

  return {
    async ask(state) {
      say(shown(state));
      for (;;) {
        say(QUESTION);
        const word = await lines.next();
        if (word === null) return null;
        const action = actionOf(word);
        if (action === 'approve' || action === 'reject') return { action };
        const decision = action === 'edit' ? await edited(state.current_state.current_draft ?? '') : null;
        if (decision !== null) return decision;
      }
    },
    close: () => reader.close(),
  };
}

function actionOf(word: string): 'approve' | 'reject' | 'edit' | null {
  const wished = word.toLowerCase();
  const found = (['approve', 'reject', 'edit'] as const).find((each) => each === wished || each.startsWith(wished));
  return wished === '' ? null : (found ?? null);
}

function shown({ next_nodes: next, current_state: state }: GodModeState): string {
  const score = state.critic_score === null ? '' : `, score ${state.critic_score}`;
  const head = `Paused before ${next.join(', ')} (iteration ${state.iteration_count}${score})`;
  if (state.current_draft === null) return `${head}. There is no draft yet.`;
  return `${head}. The draft:\n${state.current_draft.replaceAll(/^/gm, '  | ')}`;
}
