import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import { present } from '../../src/system/element.js';
import { describeInBrowser } from '../support/console-browser.js';
import { NO_NGINX, PATH_PROXIES } from '../support/path-proxy.js';
import type { PathProxy } from '../support/path-proxy.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { heldCouncil } from '../support/scripted-model.js';
import { IS_SOAK } from '../support/soak.js';

const PATH = '/council';

describeInBrowser('The console below a path', (browser) => {
  // A proxy that removes the path stands for the four.
  for (const { title, removesPath, open } of PATH_PROXIES.filter((_, at) => IS_SOAK || at === 0)) {
    const what = `signs in, starts a run, shows its live events and opens a deep link again behind ${title}`;
    if (open === null) {
      it(`${what}: ${NO_NGINX}`);
      continue;
    }
    describe(`behind ${title}`, () => {
      let service: RunningService;
      let proxy: PathProxy;
      const model = heldCouncil();

      before(async () => {
        service = await startService({ basePath: PATH, model });
        proxy = await open({ serviceUrl: service.url, path: PATH, removesPath });
      });
      after(async () => {
        await proxy.close();
        await service.stop();
      });

      it(what, async () => {
        const { key } = await new CouncilClient({ url: service.url }).keys.add({
          name: 'ann',
          scopes: ['admin', 'read', 'run', 'author'],
        });
        const page = await browser.open(`${proxy.url}/console/`, { expectsRefusals: true });
        await page.getByLabel('Key').fill(key);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Sign out' }).waitFor();
        expect((await page.context().cookies()).map(({ path }) => path)).to.deep.equal([PATH]);
        for (const place of ['Inbox', 'Councils', 'Documents', 'Runs']) {
          await page.getByRole('navigation').getByRole('link', { name: place, exact: true }).click();
          await page.getByRole('heading', { level: 1, name: place }).waitFor();
          expect(new URL(page.url()).pathname).to.match(/^\/council\/console\//);
        }
        const isFollowed = new Promise((resolve) =>
          page.once('websocket', (socket) => socket.once('framereceived', resolve)),
        );
        await page.getByRole('textbox', { name: 'Topic' }).fill('A lighthouse for the island');
        await page.getByRole('button', { name: /^Start the run/ }).click();
        await page.waitForURL(/\/council\/console\/runs\/[0-9a-f-]{36}/);
        await isFollowed;
        present(model.held[0], 'held call').release();
        await page.getByText('completed', { exact: true }).first().waitFor();
        await page.reload();
        await page.getByRole('heading', { level: 1, name: 'A lighthouse for the island' }).waitFor();
        await page.getByText('completed', { exact: true }).first().waitFor();
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByLabel('Key').waitFor();
        await page.close();
      });
    });
  }
});
