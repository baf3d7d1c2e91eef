/**
 * A process with many panels of four in flight: `node --expose-gc panels-child.js FOLDER COUNT`. Prints the growth of its heap
 * in bytes when every member's call is in flight. It waits until it is killed.
 */
import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import { nodeSystem } from '../../src/system/system.js';
import { heldModel } from './instant-model.js';
import { openTestEngine, runRequest } from './open-engine.js';
import { FOUR_MINDS } from './panel-graph.js';

const [, , path = '', text = '1'] = argv;
const count = Number(text);
let calls = 0;
let allCalled = (): void => undefined;
const areAllCalled = new Promise<void>((resolve) => (allCalled = resolve));
const model = heldModel(new Promise<void>(() => undefined));

const engine = await openTestEngine({
  path,
  maxModelCalls: 4 * count,
  model: {
    ...model,
    ask(request, call) {
      calls += 1;
      if (calls === 4 * count) allCalled();
      return model.ask(request, call);
    },
  },
});
const before = heapBytes();
for (let started = 0; started < count; started += 1) {
  const runId = nodeSystem().uuid();
  await engine.registry.start(runRequest(runId, { topic: runId, graph: FOUR_MINDS }));
}
await areAllCalled;
writeSync(1, `${heapBytes() - before}\n`);

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
