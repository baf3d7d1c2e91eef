/**
 * A process with many panels of four in flight: `node --expose-gc panels-child.js FOLDER COUNT`. Prints the growth of its heap
 * in bytes when every member's call is in flight, then lets the first two members of each panel answer and prints `answered`
 * when that is recorded. It waits until it is killed.
 */
import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import type { EventLog } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from './changed-log.js';
import { heldModel } from './instant-model.js';
import { openTestEngine, runRequest } from './open-engine.js';
import { FOUR_MINDS } from './panel-graph.js';

const [, , path = '', text = '1'] = argv;
const count = Number(text);
let [calls, answers] = [0, 0];
let [allCalled, release] = [(): void => undefined, (): void => undefined];
const areAllCalled = new Promise<void>((resolve) => (allCalled = resolve));
const [answering, never] = [new Promise<void>((resolve) => (release = resolve)), new Promise<void>(() => undefined)];
const [quick, slow] = [heldModel(answering), heldModel(never)];

const engine = await openTestEngine({
  path,
  maxModelCalls: 4 * count,
  model: {
    ...quick,
    ask(request, call) {
      calls += 1;
      if (calls === 4 * count) allCalled();
      return (request.model === 'mind-1' || request.model === 'mind-2' ? quick : slow).ask(request, call);
    },
  },
  decorate: tellingAnswers,
});
const before = heapBytes();
for (let started = 0; started < count; started += 1) {
  const runId = nodeSystem().uuid();
  await engine.registry.start(runRequest(runId, { topic: runId, graph: FOUR_MINDS }));
}
await areAllCalled;
writeSync(1, `${heapBytes() - before}\n`);
release();

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function tellingAnswers(log: EventLog): EventLog {
  return changedLog(log, {
    async append(stream, events, expected) {
      const appended = await log.append(stream, events, expected);
      answers += events.filter(({ type }) => type === 'NodeCompleted').length;
      if (answers === 2 * count) writeSync(1, 'answered\n');
      return appended;
    },
  });
}
