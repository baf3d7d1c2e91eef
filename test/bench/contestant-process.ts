/** A contestant in a process of its own: runs turns on order, and ends when its parent disconnects. */
import { setTimeout as delay } from 'node:timers/promises';
import { instantCritique, instantDraft } from '../support/instant-model.js';
import { closedLoop } from './closed-loop.js';
import type { ContestantModule, TurnOrder, TurnReport } from './contestant.js';

/** Time for background work (read models) to end, which counts too. */
const REST_MS = 150;

const [, , module = '', path = ''] = process.argv;
let asked = 0;
const loaded: unknown = await import(module);
// One of those that contest.ts names.
const { openContestant } = loaded as ContestantModule;
const contestant = await openContestant({
  path,
  model: {
    async draft(before) {
      asked += 1;
      return instantDraft(before);
    },
    async critique(draft) {
      asked += 1;
      return instantCritique(draft);
    },
  },
});
process.on('message', (order: TurnOrder) => void turn(order).then((report) => process.send?.(report)));
process.once('disconnect', () => void contestant.stop().then(() => process.exit()));
process.send?.('ready');

async function turn({ atOnce, seconds }: TurnOrder): Promise<TurnReport> {
  asked = 0;
  const before = process.cpuUsage();
  const usedMs = (): number => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
  const { acts, elapsedMs } = await closedLoop({
    clients: atOnce,
    goesOn: () => usedMs() < seconds * 1_000,
    act: async () => {
      await contestant.run();
    },
  });
  await delay(REST_MS);
  return { runs: acts, elapsedMs, processorMs: usedMs(), asked };
}
