/** The approval prompt of God Mode: shows a pause and reads the decision, line by line, from a terminal or a script. */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { GodModeState, StateOverride } from '../../generated/schemas.js';
import type { Decision } from '../commands/driver.js';
import { codePoints } from '../../graph/limits.js';
import { queue } from '../../system/async/queue.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ApprovalPrompt {
  /** The human's decision; null when the input has ended. */
  ask(state: GodModeState): Promise<Decision | null>;
  /** Ends the input: a pending `ask` resolves with null. May be called twice. */
  close(): void;
}

export interface ApprovalPromptDeps {
  readonly input: Readable;
  readonly say: (text: string) => void;
  /** Opens a text for editing; null when it is unchanged. @throws {Error} when it cannot be edited */
  readonly edit: (text: string) => Promise<string | null>;
}

const QUESTION = 'approve, reject or edit (a, r, e; a comment may follow)?';
/** Longest comment that is taken, in code points. */
const MAX_COMMENT_CHARS = 2_000;
const ANSWERS = ['approve', 'reject', 'edit'] as const;

export function openApprovalPrompt({ input, say, edit }: ApprovalPromptDeps): ApprovalPrompt {
  // `terminal: false` leaves line editing to the system, and Ctrl-C a signal.
  const reader = createInterface({ input, terminal: false });
  const lines = queue<string>();
  let isClosed = false;
  // Only while a line is waited for: an editor has the terminal to itself, and a script that never ends stays outside.
  // The reader's own pause() and resume() throw once it is closed.
  input.pause();
  reader.on('line', (line) => {
    lines.put(line.trim());
    input.pause();
  });
  reader.on('close', () => {
    isClosed = true;
    lines.end();
  });

  const nextLine = async (): Promise<string | null> => {
    if (lines.isEmpty() && !isClosed) input.resume();
    return await lines.next();
  };
  const refuse = (word: string): null => {
    say(`"${word}" is no answer: approve, reject and edit are, in full or begun.`);
    return null;
  };

  return {
    async ask(state) {
      say(pauseText(state));
      for (;;) {
        say(QUESTION);
        const line = await nextLine();
        if (line === null) return null;
        const { word, comment } = answerIn(line);
        const action = actionOf(word);
        if (codePoints(comment) > MAX_COMMENT_CHARS) {
          say(`The comment is too long: at most ${MAX_COMMENT_CHARS} characters are taken.`);
          continue;
        }
        const said = comment === '' ? {} : { comment };
        if (action === 'approve' || action === 'reject') return { action, ...said };
        const decision = action === 'edit' ? await editDrafts(state, { say, edit }) : refuse(word);
        if (decision !== null) return { ...decision, ...said };
      }
    },
    close() {
      reader.close();
      // A pipe reads ahead, paused or not, and would keep the process alive.
      input.destroy();
    },
  };
}

/** The decision that a human's edit of the drafts makes; null: they are unchanged, or cannot be edited. */
async function editDrafts(
  state: GodModeState,
  { say, edit }: Pick<ApprovalPromptDeps, 'say' | 'edit'>,
): Promise<Decision | null> {
  try {
    const override = await overrideBy(edit, draftsOf(state));
    if (override !== null) return { action: 'modify', override };
    say('The draft is unchanged: nothing is decided.');
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
  }
  return null;
}

/** A line's first word, and what is said behind it. */
function answerIn(line: string): { readonly word: string; readonly comment: string } {
  const [word = ''] = line.split(/\s/, 1);
  return { word, comment: line.slice(word.length).trim() };
}

function actionOf(word: string): (typeof ANSWERS)[number] | null {
  if (word === '') return null;
  return ANSWERS.find((each) => each.startsWith(word.toLowerCase())) ?? null;
}

/** A draft that waiting nodes will work on; `node` is null where all have the same. */
interface PendingDraft {
  readonly node: string | null;
  readonly draft: string | null;
}

/** The drafts of the branches about to run: one, or one for each node where they differ. */
function draftsOf({ next_nodes: next, current_state: state, branches = [] }: GodModeState): readonly PendingDraft[] {
  const own = branches
    .filter(({ node }) => next.includes(node))
    .map(({ node, current_draft: draft }) => ({ node, draft }));
  const differ = own.some(({ draft }) => draft !== state.current_draft);
  return differ ? own : [{ node: null, draft: state.current_draft }];
}

/** The edited drafts, one after the other; null when none has changed. */
async function overrideBy(
  edit: ApprovalPromptDeps['edit'],
  drafts: readonly PendingDraft[],
): Promise<StateOverride | null> {
  const branches: NonNullable<StateOverride['branches']> = [];
  for (const { node, draft } of drafts) {
    const text = await edit(draft ?? '');
    if (node === null) return text === null ? null : { current_draft: text };
    if (text !== null) branches.push({ node, current_draft: text });
  }
  return branches.length === 0 ? null : { branches };
}

function pauseText(state: GodModeState): string {
  const { next_nodes: next, current_state: current } = state;
  const score = current.critic_score === null ? '' : `, score ${current.critic_score}`;
  const head = `Paused before ${next.join(', ')} (iteration ${current.iteration_count}${score})`;
  return `${head}. ${draftsOf(state).map(draftText).join('\n')}${approvalsText(state)}`;
}

/** The approvers, the votes so far and the deadline; empty without a rule. */
function approvalsText({ approvals }: GodModeState): string {
  if (approvals === undefined) return '';
  const { by, quorum, votes, deadline } = approvals;
  const [first] = votes;
  const who = by === null ? 'whoever may approve' : by.join(', ');
  const so = first === undefined ? '' : ` (${votes.map(({ actor }) => actor).join(', ')}: ${first.action})`;
  const until = deadline === null ? '' : `, until ${deadline}`;
  return `\nAsked: ${who}; ${votes.length} of ${quorum} so far${so}${until}`;
}

function draftText({ node, draft }: PendingDraft): string {
  const of = node === null ? '' : ` of ${node}`;
  if (draft === null) return node === null ? 'There is no draft yet.' : `There is no draft${of} yet.`;
  return `The draft${of}:\n${draft.replaceAll(/^/gm, '  | ')}`;
}

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
    // Editors add a line feed at the end; the draft's own end is kept.
    const result = text.endsWith('\n') ? edited : edited.replace(/\n$/, '');
    return result === text || result.trim() === '' ? null : result;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
