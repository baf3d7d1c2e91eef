import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('GET /api/runs/export', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
  });
  after(() => service.stop());

  it('lets no topic begin as a formula, after blanks and in wide characters either', async () => {
    const formulas = [
      '=1',
      '+1',
      '-1',
      '@x',
      '\t1',
      '\r1',
      '\n1',
      ' =1',
      '\ufeff=1',
      '\u0000=1',
      '＝1',
      '＋1',
      '－1',
      '＠x',
    ];
    const ids = [];
    for (const topic of formulas) ids.push(await rest.start(topic));
    for (const id of ids) await rest.until(id, isOver);
    const { text } = await rest.get(`/api/runs/export?ids=${ids.join(',')}`);
    for (const [at, id] of ids.entries()) {
      const begin = `\r\n${id},,`;
      const cell = text.slice(text.indexOf(begin) + begin.length);
      expect(cell.replace(/^"/, '').startsWith(`'${formulas[at]}`), JSON.stringify(formulas[at])).to.equal(true);
    }
  });
});
