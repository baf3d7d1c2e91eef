/**
 * The stored views without SQLite and without a thread: rows that survive a process, written together with their
 * checkpoint.
 */
import { expect } from 'chai';
import { ServiceStopping } from '../../src/errors.js';
import type { Position } from '../../src/eventlog/port.js';
import type { Corruption } from '../../src/projections/corrupt-runs.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import type { ViewsClient } from '../../src/projections/views/views-client.js';
import type { Process, Scheduler } from './scheduler.js';

/** The views on the disk of an instance. */
export class StoredViews {
  checkpoint: Position | null = null;
  readonly runs = new Map<string, RunSummary>();
  readonly corrupt = new Map<string, Corruption>();
}

/** Opens the views for a process. When the process dies, a pending write may or may not happen. */
export function openStoredViews(
  views: StoredViews,
  scheduler: Scheduler,
  { process, onWritten }: { readonly process: Process; readonly onWritten: () => void },
): ViewsClient {
  const change = (work: () => void): Promise<void> =>
    new Promise((resolve) => {
      const owner = process.draws.chance(0.5) ? null : process;
      scheduler.after(process.draws.random(), owner, () => {
        work();
        process.after(process.draws.random(), resolve);
      });
    });
  const unanswered = new Set<(error: Error) => void>();
  let isClosed = false;
  /** Rejects the unanswered and all later queries, as the end of a thread does. */
  const close = async (): Promise<void> => {
    const answered = ask(() => undefined);
    isClosed = true;
    await answered;
    for (const reject of unanswered) reject(new ServiceStopping());
    await new Promise<void>((resolve) => process.after(0, resolve));
  };
  /** Reads at the time of the query or at the time of the answer. */
  const ask = <T>(question: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      if (isClosed) return reject(new ServiceStopping());
      unanswered.add(reject);
      const answer = process.draws.chance(0.5) ? { value: question() } : null;
      process.after(process.draws.random(), () => {
        unanswered.delete(reject);
        resolve(answer === null ? question() : answer.value);
      });
    });
  const all = (): readonly RunSummary[] => [...views.runs.values()];
  const newest = (a: RunSummary, b: RunSummary): number =>
    b.createdAt.localeCompare(a.createdAt) || a.id.localeCompare(b.id);
  return {
    checkpoint: views.checkpoint,
    corruptRuns: [...views.corrupt.values()],
    isOpen: true,
    write: ({ runs }, checkpoint) =>
      change(() => {
        for (const each of runs) views.runs.set(each.id, each);
        if (checkpoint !== null) views.checkpoint = checkpoint;
        onWritten();
      }),
    expired: async () => [],
    families: async () => [],
    zeroErased: async () => undefined,
    find: (runId) => ask(() => views.runs.get(runId) ?? null),
    list: ({ limit, offset }) => ask(() => [...all()].sort(newest).slice(offset, offset + limit)),
    count: () => ask(() => views.runs.size),
    counts: () => ask(() => expect.fail('The simulation asks for no numbers')),
    overview: () => ask(() => expect.fail('The simulation asks for no overview')),
    unfinished: () =>
      ask(() =>
        all()
          .filter(({ status }) => status === 'pending' || status === 'running')
          .map(({ id, owner, seq }) => ({ runId: id, owner, seq })),
      ),
    paused: (after) =>
      ask(() =>
        all()
          .map(({ id, status }, index) => ({ key: index + 1, id, status }))
          .filter(({ key, status }) => key > after && status === 'paused'),
      ),
    deadlines: (max) =>
      ask(() =>
        all()
          .flatMap(({ id, status, deadlineAt }) =>
            status === 'paused' && deadlineAt !== null ? [{ runId: id, deadline: deadlineAt }] : [],
          )
          .sort((a, b) => a.deadline.localeCompare(b.deadline))
          .slice(0, max),
      ),
    endedWithoutLeaf: () => ask(() => []),
    leafOf: () => ask(() => null),
    erasedAs: () => ask(() => null),
    blueprintIds: () => ask(() => []),
    blueprintRecords: (ids) => ask(() => ids.map(() => null)),
    documents: () => ask(() => []),
    document: () => ask(() => null),
    saveCorrupt: (corruption) => change(() => void views.corrupt.set(corruption.runId, corruption)),
    removeCorrupt: (runId) => change(() => void views.corrupt.delete(runId)),
    close,
  };
}
