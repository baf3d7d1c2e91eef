import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { startChild } from '../../support/child.js';
import { IS_SOAK, soakIt } from '../../support/soak.js';
import { tempDir } from '../../support/temp-dir.js';

const CHILD = fileURLToPath(new URL('../../support/panels-child.js', import.meta.url));
const PANELS = IS_SOAK ? 1_000 : 100;
/** Heap of a panel of four whose calls are in flight: 38 kB measured. With 10,000, a process then takes less than 1 GB. */
const MAX_BYTES_PER_PANEL = 50_000;

describe(`${PANELS} panels of four in flight in one process`, () => {
  soakIt('take a bounded heap', async () => {
    const dir = tempDir();
    const child = startChild(process.execPath, ['--expose-gc', CHILD, dir.path, String(PANELS)]);
    await child.waitFor((lines) => lines.length > 0);
    await child.kill();
    expect(Number(child.lines[0]) / PANELS, 'bytes per panel').to.be.within(1, MAX_BYTES_PER_PANEL);
    dir.remove();
  });
});
