import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { exportLine, readExport } from '../../../src/audit/export.js';
import { verifyRecord } from '../../../src/audit/verify.js';
import { canonical } from '../../../src/eventsourcing/canonical-json.js';
import type { ExportedEvent } from '../../../src/eventsourcing/hash-chain.js';
import type { RunEvent } from '../../../src/run/events.js';
import { chartCache } from '../../../src/run/chart/machine.js';
import type { RunState } from '../../../src/run/state.js';
import { failureOf, finalDraftOf, isFinished, openPauseOf } from '../../../src/run/state.js';
import { assertRunEvent } from '../../../src/run/stream.js';
import { nodeSystem } from '../../../src/system/system.js';
import type { Story } from '../../support/given.js';
import { playOut, storyOfRecord, scored, activeNodes, wrote } from '../../support/given.js';
import { GOLDEN, eventIn } from '../../support/golden.js';

/**
 * Histories that an older version recorded. In it, branches waited for every branch that could reach their node, also
 * by an edge that leads back; overrides changed every branch; and it showed a critic's verdict where that no longer
 * counted. Each line of a `.shown` file is the state that this version showed after the event of the same line.
 */
const FOLDER = new URL('waiting-branches/', GOLDEN);
const { sha256 } = nodeSystem();
const charts = chartCache();

interface History {
  readonly name: string;
  readonly events: readonly RunEvent[];
  readonly shown: readonly string[];
}

describe('Runs recorded while branches in a loop waited for each other', () => {
  const histories = readHistories();

  it('include unfinished and finished ones, God Mode and forks', () => {
    const ends = histories.map(({ events }) => events.at(-1)?.type);
    expect(ends).to.include.members(['RunCompleted', 'RunFailed', 'RunReleased', 'NodeStarted']);
    const requested = histories.flatMap(({ events: [first] }) => (first?.type === 'RunRequested' ? [first.data] : []));
    expect(requested.filter(({ godMode }) => godMode)).to.have.length.at.least(3);
    expect(requested.filter(({ parent }) => parent !== null)).to.have.length.at.least(2);
  });

  for (const { name, events, shown } of histories) {
    it(`verify, and fold after every event to the recorded answer: ${name}`, async () => {
      const states: string[] = [];
      const { firstDifference } = await verified(events, (run) => states.push(shownOf(run)));
      expect(firstDifference).to.equal(null);
      expect(states).to.deep.equal(shown);
    });

    it(`continue from every append to an end that verifies: ${name}`, async () => {
      for (const left of unfinishedBeginnings(events)) {
        const { run, events: all } = playedOn(storyOfRecord(left));
        expect(run.phase.status, `from event ${left.length}`).to.equal('completed');
        expect((await verified(all)).firstDifference).to.equal(null);
      }
    });
  }
});

function readHistories(): readonly History[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.ndjson'));
  return files.sort().map((file) => {
    const name = file.replace(/\.ndjson$/, '');
    return { name, events: linesOf(file).map(runEventIn), shown: linesOf(`${name}.shown`) };
  });
}

function linesOf(file: string): readonly string[] {
  return readFileSync(new URL(file, FOLDER), 'utf8').trimEnd().split('\n');
}

function runEventIn(line: string): RunEvent {
  const event = eventIn(line);
  assertRunEvent(event);
  return event;
}

function verified(
  events: readonly ExportedEvent[],
  onTaken?: (run: RunState) => void,
): ReturnType<typeof verifyRecord> {
  const first = events[0]?.data ?? {};
  const runId = 'runId' in first ? String(first.runId) : '';
  const lines = asyncOf(events.map(exportLine));
  return verifyRecord(runId, readExport(runId, lines), {
    charts,
    sha256,
    ...(onTaken !== undefined && { onReplayed: onTaken }),
  });
}

async function* asyncOf<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}

function shownOf(run: RunState): string {
  const { activeNode, iterationCount, shown } = run.progress;
  return canonical({
    ...{ activeNode, iterationCount },
    status: run.phase.status,
    score: shown.score,
    draft: shown.draft,
    nextNodes: openPauseOf(run)?.nextNodes ?? [],
    active: activeNodes(run),
    finalDraft: finalDraftOf(run),
    error: failureOf(run)?.error ?? null,
  });
}

/** The record after each append except the last. The events of one append have the same time. */
function unfinishedBeginnings(events: readonly RunEvent[]): readonly (readonly RunEvent[])[] {
  return events
    .map((_, index) => events.slice(0, index + 1))
    .filter((begun) => begun.at(-1)?.at !== events[begun.length]?.at)
    .filter((begun) => !/^Run(Completed|Failed)$/.test(begun.at(-1)?.type ?? ''));
}

/** Plays the run to its end at another instance: critics approve, and a human approves every pause. */
function playedOn(left: Story): Story {
  let story = left;
  if (left.run.phase.status !== 'paused') {
    story = story.when(
      { type: 'ClaimRun', reason: left.run.phase.status === 'pending' ? 'started' : 'recovered' },
      'two',
    );
  }
  for (let rounds = 0; rounds < 20 && !isFinished(story.run); rounds += 1) {
    if (openPauseOf(story.run) !== null) story = story.whenDecided({ action: 'approve', modifiedState: null }, 'two');
    story = playOut(story, (node, run) => (run.plan.node(node).role === 'critic' ? scored(node, 9) : wrote(node)));
  }
  return story;
}
