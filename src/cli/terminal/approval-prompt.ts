/** The prompt at a pause: shows it and reads the decision as lines from a terminal or a script. */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { GodModeState, StateOverride } from '../../generated/schemas.js';
import type { Decision } from '../commands/driver.js';
import { BUDGET_QUESTION, budgetIn, budgetPauseText } from './budget-prompt.js';
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
const COMMENT_TOO_LONG = `The comment is too long: at most ${MAX_COMMENT_CHARS} characters are accepted.`;
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
  return {
    async ask(state) {
      say(pauseText(state));
      for (;;) {
        say(state.pause_reason === 'budget' ? BUDGET_QUESTION : QUESTION);
        const line = await nextLine();
        if (line === null) return null;
        const decision = await decisionIn(line, state, edit);
        if (typeof decision !== 'string') return decision;
        say(decision);
      }
    },
    close() {
      reader.close();
      // A pipe reads ahead even while paused, and would keep the process alive.
      input.destroy();
    },
  };
}

/** The decision that a line names, or what is wrong with it. */
async function decisionIn(
  line: string,
  state: GodModeState,
  edit: ApprovalPromptDeps['edit'],
): Promise<Decision | string> {
  const { word, rest } = answerIn(line);
  const action = actionOf(word);
  const isForBudget = state.pause_reason === 'budget';
  if (isForBudget && action === 'approve') return raiseIn(rest);
  if (action === 'approve' || action === 'reject') return withComment({ action }, rest);
  if (action === 'edit' && !isForBudget) return await editDrafts(state, rest, edit);
  const answers = isForBudget ? 'approve with a new total, or reject' : 'approve, reject or edit, or a, r, e';
  return `"${word}" is not an answer: type ${answers}.`;
}

/** The approval of a larger budget, or what is wrong with it. */
function raiseIn(text: string): Decision | string {
  const { budget, comment } = budgetIn(text);
  if (Object.keys(budget).length > 0) return withComment({ action: 'approve', budget }, comment);
  return 'An approval needs a new total: approve tokens=N or approve usd=N, or both.';
}

/** A decision with its comment, or what is wrong with the comment. */
function withComment(decision: Decision, comment: string): Decision | string {
  if (isTooLong(comment)) return COMMENT_TOO_LONG;
  return comment === '' ? decision : { ...decision, comment };
}

function isTooLong(comment: string): boolean {
  return codePoints(comment) > MAX_COMMENT_CHARS;
}

/** The decision to change the drafts as the user edits them, or why there is none. */
async function editDrafts(
  state: GodModeState,
  comment: string,
  edit: ApprovalPromptDeps['edit'],
): Promise<Decision | string> {
  if (isTooLong(comment)) return COMMENT_TOO_LONG;
  try {
    const override = await overrideBy(edit, draftsOf(state));
    if (override !== null) return withComment({ action: 'modify', override }, comment);
    return 'The draft is unchanged, so nothing is decided.';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The first word of a line, and the rest. */
function answerIn(line: string): { readonly word: string; readonly rest: string } {
  const [word = ''] = line.split(/\s/, 1);
  return { word, rest: line.slice(word.length).trim() };
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
  const { pause_reason: reason, budget, next_nodes: waiting } = state;
  if (reason === 'budget' && budget !== undefined) return budgetPauseText(waiting, budget);
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
