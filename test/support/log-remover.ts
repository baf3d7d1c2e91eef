/** A process that appends streams and removes them: `node log-remover.js FILE NAME`. Prints what it removes. */
import { randomUUID } from 'node:crypto';
import { argv, stdout } from 'node:process';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';

const [, , file = '', name = ''] = argv;
const log = await openEmbeddedLog({ file });
for (let n = 0; ; n += 1) {
  const streams = Array.from({ length: 10 }, (_, at) => `run-${name}-${n}-${at}`);
  for (let revision = 0; revision < 3; revision += 1)
    await Promise.all(
      streams.map((stream) => {
        const data = JSON.stringify({ text: `canary-${stream}!`.repeat(1 + revision * 10) });
        const event = { id: randomUUID(), type: 'Written', data, metadata: {} };
        return log.append(stream, [event], revision === 0 ? 'none' : revision - 1);
      }),
    );
  const gone = streams.filter((_, at) => at % 2 === 0);
  stdout.write(`removing ${gone.join(' ')}\n`);
  await log.remove(gone);
  for (const stream of gone) stdout.write(`removed ${stream}\n`);
}
