/** A run as poll and history show it: one flat record, derived from the fold alone. */
import type { ExecutionMode, ParentRun, RunBudget, RunFailedData } from '../generated/schemas.js';
import type { UsageTotals } from '../run/effort.js';
import { usageOf } from '../run/effort.js';
import type { JsonOutput, RunState, RunStatus } from '../run/state.js';
import type { ApproverRule } from '../run/pauses/approvals.js';
import { deadlineOf, ruleAt } from '../run/pauses/approvals.js';
import type { RunSpending } from '../run/budget/spending.js';
import { reservationFor } from '../run/budget/spending.js';
import {
  completedAtOf,
  failureOf,
  finalDraftOf,
  finalOutputOf,
  hasSession,
  iterationShown,
  openPauseOf,
  pauseOf,
} from '../run/state.js';
import { fieldOf } from '../system/untrusted.js';

/** A page of a list. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

export interface RunSummary {
  readonly id: string;
  /** Revision of the last event it was folded from. */
  readonly seq: number;
  readonly blueprintId: string | null;
  /** Name of the key that started the run, or null if the service had no keys. */
  readonly actor: string | null;
  /** Names of the keys that started the runs it was forked from; absent if there are none, or in an older record. */
  readonly earlierStarters?: readonly string[];
  /** Id of the run that it was forked from, or null if it is no fork. */
  readonly parent: string | null;
  /** The run that has started it for a council; absent if none has. */
  readonly parentRun?: ParentRun;
  /** The topic of the start, which later overrides do not change. */
  readonly inputTopic: string;
  /** Bytes of its material in UTF-8; absent without. */
  readonly materialBytes?: number;
  readonly status: RunStatus;
  readonly executionMode: ExecutionMode;
  /** Instance that runs it now, or null if none does. */
  readonly owner: string | null;
  /** Node started last; while paused the first that waits; `done` after completion. */
  readonly activeNode: string | null;
  readonly finalDraft: string | null;
  /** Absent if it has none. */
  readonly finalOutput?: JsonOutput;
  readonly criticScore: number | null;
  /** The number of iterations, or null before the first draft. */
  readonly iterationCount: number | null;
  readonly error: string | null;
  /** Why it failed, or null if it has not failed. */
  readonly failureKind: RunFailedData['kind'] | null;
  /** Whether it tries a council that is not saved. */
  readonly isTrial: boolean;
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
  /** Time of the terminal event, including a failure. */
  readonly completedAt: string | null;
  /** When its pause began, or null if it is not paused. */
  readonly waitingSince: string | null;
  /** Deadline of its open pause, ISO 8601, or null if there is none. */
  readonly deadlineAt: string | null;
  /** The approvers of its open pause, or null if there is none or it has no approval rule. */
  readonly approvers: ApproverRule | null;
  /** Time in pauses, in milliseconds, or null while it is paused. */
  readonly waitedMs: number | null;
  /** The tokens and the cost, or null if they are unknown. */
  readonly usage: UsageTotals | null;
  /** The state that a human decides on, or null if humans do not decide on it. */
  readonly session: { readonly nextNodes: readonly string[]; readonly currentDraft: string | null } | null;
  /** Absent unless it is paused for its budget. */
  readonly pauseReason?: 'budget';
  /** The budget with what is spent of it; absent if it has none. */
  readonly budget?: RunBudget & { readonly spentUsd: number | null; readonly spentTokens: number };
}

/** Whether a value has the form of a summary: the stored file may have been changed by other programs. */
export function isRunSummary(value: unknown): value is RunSummary {
  return Object.entries(FIELDS).every(([field, isValid]) => isValid(fieldOf(value, field)));
}

const STATUSES: ReadonlySet<unknown> = new Set<RunStatus>(['pending', 'running', 'paused', 'completed', 'failed']);

const isText = (value: unknown): boolean => typeof value === 'string';
const isTextOrNull = (value: unknown): boolean => isNullOr('string', value);
const isNumberOrNull = (value: unknown): boolean => isNullOr('number', value);

/** What each field must be. */
const FIELDS: Readonly<Partial<Record<keyof RunSummary, (value: unknown) => boolean>>> = {
  id: isText,
  seq: Number.isInteger,
  inputTopic: isText,
  materialBytes: (value) => value === undefined || Number.isInteger(value),
  status: (value) => STATUSES.has(value),
  executionMode: isText,
  createdAt: isText,
  isTrial: (value) => typeof value === 'boolean',
  earlierStarters: (value) => value === undefined || areTexts(value),
  blueprintId: isTextOrNull,
  actor: isTextOrNull,
  parent: isTextOrNull,
  parentRun: isParentRun,
  owner: isTextOrNull,
  activeNode: isTextOrNull,
  finalDraft: isTextOrNull,
  error: isTextOrNull,
  failureKind: isTextOrNull,
  completedAt: isTextOrNull,
  waitingSince: isTextOrNull,
  deadlineAt: isTextOrNull,
  criticScore: isNumberOrNull,
  iterationCount: isNumberOrNull,
  waitedMs: isNumberOrNull,
  usage: isUsage,
  approvers: areApprovers,
  session: isSession,
  budget: isBudget,
};

function isUsage(value: unknown): boolean {
  const byModel = fieldOf(value, 'byModel');
  if (value === null || !Array.isArray(byModel)) return value === null;
  return areCounts(value) && byModel.every((each) => areCounts(each) && typeof fieldOf(each, 'model') === 'string');
}

function areCounts(value: unknown): boolean {
  return (
    COUNTS.every((field) => Number.isInteger(fieldOf(value, field))) &&
    SUMS.every((field) => isNullOr('number', fieldOf(value, field)))
  );
}

const COUNTS: readonly (keyof UsageTotals)[] = ['calls', 'repeatedCalls', 'toldCalls', 'pricedCalls'];
const SUMS: readonly (keyof UsageTotals)[] = [
  ...(['inputTokens', 'outputTokens', 'cachedInputTokens', 'reasoningTokens'] as const),
  'costUsd',
];

function isParentRun(value: unknown): boolean {
  if (value === undefined) return true;
  const isPlace = ['step', 'index'].every((field) => Number.isInteger(fieldOf(value, field)));
  return isPlace && ['runId', 'node'].every((field) => typeof fieldOf(value, field) === 'string');
}

function isSession(value: unknown): boolean {
  if (value === null) return true;
  return areTexts(fieldOf(value, 'nextNodes')) && isNullOr('string', fieldOf(value, 'currentDraft'));
}

function isBudget(value: unknown): boolean {
  if (value === undefined) return true;
  const areNumbers = ['usd', 'tokens', 'spentUsd'].every((field) => isNullOr('number', fieldOf(value, field)));
  return areNumbers && typeof fieldOf(value, 'spentTokens') === 'number';
}

function areApprovers(value: unknown): boolean {
  if (value === null) return true;
  const by = fieldOf(value, 'by');
  const isRule = typeof fieldOf(value, 'notByStarter') === 'boolean' && Number.isInteger(fieldOf(value, 'quorum'));
  return isRule && (by === null || areTexts(by));
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isNullOr(type: 'string' | 'number', value: unknown): boolean {
  return value === null || typeof value === type;
}

export function summaryOf(run: RunState): RunSummary {
  return {
    id: run.runId,
    seq: run.head.seq,
    blueprintId: run.request.blueprintId,
    actor: run.request.actor,
    ...(run.request.earlierStarters !== undefined && { earlierStarters: run.request.earlierStarters }),
    parent: run.request.parent?.runId ?? null,
    ...(run.parentRun !== null && { parentRun: run.parentRun }),
    inputTopic: run.request.inputTopic,
    ...matterOf(run),
    status: run.phase.status,
    executionMode: run.request.executionMode,
    owner: run.ownership.owner,
    activeNode: run.progress.activeNode,
    finalDraft: finalDraftOf(run),
    criticScore: run.progress.shown.score,
    iterationCount: iterationShown(run),
    ...failureIn(run),
    isTrial: run.request.blueprintId === null && run.request.blueprintName !== null,
    createdAt: run.createdAt,
    completedAt: completedAtOf(run),
    usage: usageOf(run.effort),
    ...waitOf(run),
    ...(run.spending !== null && { budget: budgetIn(run.spending) }),
  };
}

/** What only runs with a material or a final output have. */
function matterOf(run: RunState): Pick<RunSummary, 'materialBytes' | 'finalOutput'> {
  const { material } = run.request;
  const finalOutput = finalOutputOf(run);
  return {
    ...(material !== undefined && { materialBytes: Buffer.byteLength(material) }),
    ...(finalOutput !== undefined && { finalOutput }),
  };
}

/** The list's error for a corrupt run. */
const CORRUPT_ERROR = 'The record of this run is damaged';

/** A corrupt run as lists show and count it: failed, with only the data of its start. */
export function asCorrupt({ finalOutput: _, ...run }: RunSummary): RunSummary {
  return {
    ...run,
    status: 'failed',
    owner: null,
    activeNode: null,
    finalDraft: null,
    criticScore: null,
    iterationCount: null,
    error: CORRUPT_ERROR,
    failureKind: null,
    completedAt: null,
    waitingSince: null,
    deadlineAt: null,
    approvers: null,
    waitedMs: null,
    usage: null,
    session: null,
  };
}

/**
 * From the start to the end in milliseconds, or null if the run has not ended. At least 0: the clocks of instances differ, and a
 * clock may be set back.
 */
export function durationOf({ createdAt, completedAt }: RunSummary): number | null {
  return completedAt === null ? null : Math.max(0, Date.parse(completedAt) - Date.parse(createdAt));
}

/** The same without its waits for humans. */
export function workedMsOf(run: RunSummary): number | null {
  const durationMs = durationOf(run);
  return durationMs === null ? null : Math.max(0, durationMs - (run.waitedMs ?? 0));
}

function failureIn(run: RunState): Pick<RunSummary, 'error' | 'failureKind'> {
  const failure = failureOf(run);
  return { error: failure?.error ?? null, failureKind: failure?.kind ?? null };
}

/** What a run shows of its waits for humans. */
function waitOf(run: RunState) {
  const [pause, open] = [pauseOf(run), openPauseOf(run)];
  const rule = open && ruleAt(run, open);
  const session = { nextNodes: pause?.nextNodes ?? [], currentDraft: run.progress.shown.draft };
  return {
    waitingSince: pause?.pausedAt ?? null,
    deadlineAt: open && deadlineOf(run, open),
    approvers: rule && { by: rule.by, notByStarter: rule.notByStarter, quorum: rule.quorum },
    waitedMs: pause === null ? run.effort.waitedMs : null,
    session: hasSession(run) ? session : null,
    ...(pause?.reason === 'budget' && { pauseReason: 'budget' as const }),
  };
}

function budgetIn({ budget, spent }: RunSpending): NonNullable<RunSummary['budget']> {
  const { usd, tokens } = reservationFor(spent);
  return { ...budget, spentUsd: usd, spentTokens: tokens };
}
