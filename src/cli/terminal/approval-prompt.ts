/** The approval prompt of God Mode: shows a pause and reads the decision as lines from a terminal or a script. */
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
  /** The user's decision, or null if the input has ended. */
  ask(state: GodModeState): Promise<Decision | null>;
  /** Ends the input: a pending `ask` resolves with null. May be called twice. */
  close(): void;
}

export interface ApprovalPromptDeps {
  readonly input: Readable;
  readonly say: (text: string) => void;
  /**
   * Opens a text in an editor. Resolves with the new text, or null if it is unchanged.
   * @throws {Error} the editor fails
   */
  readonly edit: (text: string) => Promise<string | null>;
}

const QUESTION = 'approve, reject or edit (a, r, e; a comment may follow)?';
/** Longest comment accepted, in code points. */
const MAX_COMMENT_CHARS = 2_000;
const ANSWERS = ['approve', 'reject', 'edit'] as const;

export function openApprovalPrompt({ input, say, edit }: ApprovalPromptDeps): ApprovalPrompt {
  // With `terminal: false` the system edits lines, and Ctrl-C stays a signal.
  const reader = createInterface({ input, terminal: false });
  const lines = queue<string>();
  let isClosed = false;
  // The prompt reads only while it waits for a line: an editor needs the terminal for itself, and the input of a script
  // may
  // never end. pause() and resume() of the reader throw after its close.
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
    say(`"${word}" is not an answer: type approve, reject or edit, or a, r, e.`);
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
          say(`The comment is too long: at most ${MAX_COMMENT_CHARS} characters are accepted.`);
          continue;
        }
        const withComment = comment === '' ? {} : { comment };
        if (action === 'approve' || action === 'reject') return { action, ...withComment };
        const decision = action === 'edit' ? await editDrafts(state, { say, edit }) : refuse(word);
        if (decision !== null) return { ...decision, ...withComment };
      }
    },
    close() {
      reader.close();
      // A pipe reads ahead even while paused, and would keep the process alive.
      input.destroy();
    },
  };
}

/** The decision to change the drafts as the user edits them, or null if they are unchanged or the editor fails. */
async function editDrafts(
  state: GodModeState,
  { say, edit }: Pick<ApprovalPromptDeps, 'say' | 'edit'>,
): Promise<Decision | null> {
  try {
    const override = await overrideBy(edit, draftsOf(state));
    if (override !== null) return { action: 'modify', override };
    say('The draft is unchanged, so nothing is decided.');
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
  }
  return null;
}

/** The first word of a line, and the rest as a comment. */
function answerIn(line: string): { readonly word: string; readonly comment: string } {
  const [word = ''] = line.split(/\s/, 1);
  return { word, comment: line.slice(word.length).trim() };
}

function actionOf(word: string): (typeof ANSWERS)[number] | null {
  if (word === '') return null;
  return ANSWERS.find((each) => each.startsWith(word.toLowerCase())) ?? null;
}

/** The draft that the waiting nodes receive. */
interface PendingDraft {
  /** The node that receives it, or null if all receive the same draft. */
  readonly node: string | null;
  readonly draft: string | null;
}

/** The drafts of the waiting nodes: one for all, or one for each node if they differ. */
function draftsOf({ next_nodes: next, current_state: state, branches = [] }: GodModeState): readonly PendingDraft[] {
  const own = branches
    .filter(({ node }) => next.includes(node))
    .map(({ node, current_draft: draft }) => ({ node, draft }));
  const differ = own.some(({ draft }) => draft !== state.current_draft);
  return differ ? own : [{ node: null, draft: state.current_draft }];
}

/** Opens the drafts one after the other. Resolves with the changed ones, or null if none has changed. */
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

/** The approvers, the votes so far and the deadline, or '' if the pause has no approval rule. */
function approvalsText({ approvals }: GodModeState): string {
  if (approvals === undefined) return '';
  const { by, quorum, votes, deadline } = approvals;
  const [first] = votes;
  const who = by === null ? 'every approver' : by.join(', ');
  const so = first === undefined ? '' : ` (${votes.map(({ actor }) => actor).join(', ')}: ${first.action})`;
  const until = deadline === null ? '' : `, until ${deadline}`;
  return `\nApprovers: ${who}; ${votes.length} of ${quorum} votes${so}${until}`;
}

function draftText({ node, draft }: PendingDraft): string {
  const of = node === null ? '' : ` of ${node}`;
  if (draft === null) return node === null ? 'There is no draft yet.' : `There is no draft${of} yet.`;
  return `The draft${of}:\n${draft.replaceAll(/^/gm, '  | ')}`;
}

export interface EditorChoice {
  /** A shell command that takes a file, from `$EDITOR`, or null for `vi`, which needs a terminal. */
  readonly command: string | null;
  /** Whether there is a terminal for the editor. */
  readonly isTerminal: boolean;
}

/**
 * Opens a text in an editor and waits until the editor ends. The editor writes to standard error, because standard
 * output is for the final draft alone.
 *
 * @returns the new text, or null if it is empty or unchanged
 * @throws {Error} there is no editor, or it fails
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
    if (editor.exitCode !== 0) throw new Error(`The editor "${command}" failed, so nothing is decided`);
    const edited = await readFile(file, 'utf8');
    // Editors add a line feed at the end; the draft keeps its own end.
    const result = text.endsWith('\n') ? edited : edited.replace(/\n$/, '');
    return result === text || result.trim() === '' ? null : result;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
