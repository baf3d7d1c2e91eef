/**
 * A process that runs councils on a folder as fast as it can, so many at once, until it is killed: `node runs-child.js
 * FOLDER AT_ONCE`. Prints the id of each run once its end is acknowledged. No client watches the runs.
 */
import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import type { EventLog } from '../../src/eventlog/port.js';
import { runIdOf } from '../../src/run/events.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from './changed-log.js';
import { instantModel } from './instant-model.js';
import { openTestEngine, runRequest } from './open-engine.js';

const [, , path = '', atOnce = '1'] = argv;
const engine = await openTestEngine({ path, model: instantModel(), decorate: tellingEnds });
for (let i = 0; i < Number(atOnce); i += 1) startOne();

function startOne(): void {
  void engine.registry.start(runRequest(nodeSystem().uuid()));
}

function tellingEnds(log: EventLog): EventLog {
  return changedLog(log, {
    async append(stream, events, expected) {
      const appended = await log.append(stream, events, expected);
      if (events.at(-1)?.type === 'RunCompleted') {
        writeSync(1, `${runIdOf(stream)}\n`);
        startOne();
      }
      return appended;
    },
  });
}
