/**
 * What must hold in the end: whatever instance is asked, its lists, polls and verifications are the fold of the log; and
 * what clients were answered on the way is kept.
 */
import type { RunSummary } from '../../src/projections/run-summary.js';
import type { World } from './history.js';
import { isOfLog } from './instance.js';

/** Asks each instance; rejects when one does not answer at all. */
export async function checkAnswers(world: World): Promise<void> {
  const { instances, records, scheduler, plan } = world;
  for (const instance of instances) {
    const { engine } = instance;
    if (engine === null) throw new Error('an instance is down');
    // A slow line may take longer than a question waits.
    const again = <T>(ask: () => Promise<T>): Promise<T> =>
      ask().catch((error: unknown) => (isOfLog(error) ? again(ask) : Promise.reject(error)));
    // Whoever has just thawed is fenced until its next heartbeat; that it never is ready ends the history too.
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

/** What is answered of a run is what its last event has led to. */
function checkHead(world: World, summary: RunSummary, by: string): void {
  world.answered(summary, by);
  const events = world.records.get(summary.id)?.events.length;
  world.must(
    summary.seq + 1 === events,
    'views equal the fold',
    () => `${by} knows ${summary.seq + 1} of ${events} events of run ${summary.id}`,
  );
}
