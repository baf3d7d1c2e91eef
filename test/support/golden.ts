/** The files of test/golden/ and their answers. */
import { readdirSync, readFileSync } from 'node:fs';
import type { ExportedEvent } from '../../src/eventsourcing/hash-chain.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { RunEvent } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { failureOf, finalDraftOf, openPauseOf } from '../../src/run/state.js';
import { assertRunEvent } from '../../src/run/stream.js';

/** From dist/test/support, where this file runs. */
export const GOLDEN = new URL('../../../test/golden/', import.meta.url);

/** A recorded history of one version, as an export has it, and what it folds to. */
export interface GoldenHistory {
  readonly name: string;
  readonly lines: readonly string[];
  /** The answer after each event, a line each. */
  readonly answers: readonly string[];
}

export function readGolden(): readonly GoldenHistory[] {
  const names = readdirSync(GOLDEN).filter((file) => /^v\d+-.*\.ndjson$/.test(file));
  return names.sort().map((file) => {
    const name = file.replace(/\.ndjson$/, '');
    return { name, lines: linesOf(file), answers: linesOf(`${name}.answers`) };
  });
}

function linesOf(file: string): readonly string[] {
  return readFileSync(new URL(file, GOLDEN), 'utf8').trimEnd().split('\n');
}

export function eventIn(line: string): ExportedEvent {
  return JSON.parse(line) as ExportedEvent;
}

/** The events of a run. */
export function runEventsIn(lines: readonly string[]): readonly RunEvent[] {
  return lines.map((line) => {
    const event = eventIn(line);
    assertRunEvent(event);
    return event;
  });
}

/** A run as clients see it, and its state, as one line: only fields that every later version must show too. */
export function answerOf(run: RunState): string {
  const { seq } = run.head;
  const { status } = run.phase;
  const { activeNode, inputTopic, shown, iterationCount, steps, scores, frontier: front } = run.progress;
  return canonical({
    seq,
    status,
    activeNode,
    inputTopic,
    iterationCount,
    steps,
    scores,
    finalDraft: finalDraftOf(run),
    failure: failureOf(run),
    draft: shown.draft,
    score: shown.score,
    feedback: shown.feedback.map(({ text }) => text),
    routeDecision: shown.verdict,
    nextNodes: openPauseOf(run)?.nextNodes ?? [],
    underWay: front.filter((each) => each.active).map(({ node, step, attempt }) => ({ node, step, attempt })),
    waiting: run.progress.arrivals.map(({ node, branch }) => ({ node, draft: branch.draft })),
    owner: run.ownership.owner,
    parent: run.request.parent,
  });
}
