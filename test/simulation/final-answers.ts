/**
 * Checks at the end of a history: at every instance, lists, polls and verifications equal the fold of the log, and all
 * earlier answers to clients still hold.
 */
import type { RunSummary } from '../../src/projections/run-summary.js';
import type { World } from './history.js';
import { isOfLog } from './instance.js';

/** Queries each instance; rejects if one does not answer. */
export async function checkAnswers(world: World): Promise<void> {
  const { instances, records, scheduler, plan } = world;
  for (const instance of instances) {
    const { engine } = instance;
    if (engine === null) throw new Error('an instance is down');
    // On a slow line an answer may take longer than the query waits.
    const again = <T>(ask: () => Promise<T>): Promise<T> =>
      ask().catch((error: unknown) => (isOfLog(error) ? again(ask) : Promise.reject(error)));
    // An instance that has just thawed is fenced until its next heartbeat. If it never becomes ready, the history fails
    // too.
    while (!(await again(() => engine.readiness.isReady())))
      await new Promise<void>((resolve) => scheduler.after(500, null, resolve));
    const list = await again(() => engine.queries.list({ limit: 100, offset: 0 }));
    world.must(
      list.length === records.size,
      'views equal the fold',
      () => `${list.length} of ${records.size} runs are listed`,
    );
    for (const each of list) checkHead(world, each, 'a list');
    for (const runId of records.keys()) {
      world.must(
        engine.registry.live(runId) === null,
        'every run ends once faults stop',
        () => `run ${runId} has ended and is live`,
      );
      if (!plan.isVerified) continue;
      const found = await again(() => engine.queries.find(runId));
      world.must(found !== null, 'views equal the fold', () => `run ${runId} is not found`);
      if (found !== null) checkHead(world, found, 'a poll');
      if (instance === instances[0]) {
        const verified = await again(() => engine.audits.verify(runId));
        const isValid = verified !== null && verified.firstDifference === null;
        world.must(isValid, 'views equal the fold', () => `verify says ${JSON.stringify(verified)}`);
      }
    }
  }
  world.clients.check();
}

/** Checks that the answers about a run equal the state after its last event. */
function checkHead(world: World, summary: RunSummary, by: string): void {
  world.answered(summary, by);
  const events = world.records.get(summary.id)?.events.length;
  world.must(
    summary.seq + 1 === events,
    'views equal the fold',
    () => `${by} knows ${summary.seq + 1} of ${events} events of run ${summary.id}`,
  );
}
