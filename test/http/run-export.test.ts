import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

/** How many cells each run has. */
const COLUMNS = 20;

/** The cells of a file as a spreadsheet reads it: a quote counts only at the beginning of a cell. */
function cellsOf(text: string, separators: string): readonly string[] {
  const cells: string[] = [];
  let [cell, isQuoted] = ['', false];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (isQuoted && sign === '"' && text.charAt(at + 1) === '"') cell += text.charAt((at += 1));
    else if (sign === '"' && (isQuoted || cell === '')) isQuoted = !isQuoted;
    else if (isQuoted || !`${separators}\r\n`.includes(sign)) cell += sign;
    else if (sign !== '\r' || text.charAt(at + 1) !== '\n') {
      cells.push(cell);
      cell = '';
    }
  }
  return cells;
}

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

  it('has no cell that begins as a formula where spreadsheets separate by other signs than the comma', async () => {
    const topics = [
      ...['a;=1', 'a;+1', 'a; -1', 'a;@x', 'a\t=1', 'a\n=1', 'a\r@x', 'a, b;=1', 'a;"=1"', 'a;;=1', 'a;\u0000=1'],
      ...['"a";=1', 'a\n"=1"', 'a;\n\n =1', 'a;＝1', '"=1', '";=1', '";"=1'],
    ];
    const ids = [];
    for (const topic of topics) ids.push(await rest.start(topic));
    for (const id of ids) await rest.until(id, isOver);
    const { text } = await rest.get(`/api/runs/export?ids=${ids.join(',')}`);
    for (const separators of [',', ';', '\t', ',;\t']) {
      const begins = cellsOf(text, separators).filter((cell) => /^[\s\p{C}"]*[=+\-@＝＋－＠]/u.test(cell));
      expect(begins, JSON.stringify(separators)).to.deep.equal([]);
    }
    const [, ...rows] = cellsOf(text, ',').filter((_, at) => at % COLUMNS === 2);
    expect(rows[0]).to.equal("a;'=1");
    expect(rows).to.have.lengthOf(topics.length);
  });
});
