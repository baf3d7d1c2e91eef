import { expect } from 'chai';
import { quotationJudge } from '../../src/audit/quotations.js';
import { nodeSystem } from '../../src/system/system.js';

const PAGE = `Old trees store more carbon than young trees do, says the re-
port. The forest of the north grows slowly in the cold. Its well-known oaks
stand at -5 degrees; 3.5 % of them are “very old”, x ≠ y, and COVID-19
came in 2019–2020. Ils disent “l’arbre est vieux” à midi.

東京の古い木は若い木より多くの炭素を蓄える。`;

const pause = () => new Promise<void>((resolve) => void nodeSystem().after(0, resolve));
const judged = async (quoted: string, text = PAGE): Promise<string> => (await quotationJudge({ text }, pause))(quoted);

describe('A quotation', () => {
  const cases: readonly [verdict: string, quoted: string][] = [
    ['exact', 'Old trees store more carbon'],
    ['exact', 'stand at -5 degrees; 3.5 % of them'],
    ['exact', 'The forest of the north grows slowly in the cold. Its well-known oaks stand at'],
    ['exact', '“Old trees store more carbon,”'],
    ['exact', 'Old **trees** store *more* carbon'],
    ['exact', '古い木は若い木より多くの炭素'],
    ['near', 'old trees store MORE carbon'],
    ['near', 'young trees do says the report'],
    ['near', 'Its well known oaks stand'],
    ['near', 'well known oaks stand … in 2019-2020'],
    ['near', "Ils disent: «l'arbre est vieux»"],
    ['near', '3.5% of them are very old'],
    ['near', '古い木は、若い木より'],
    ['missing', 'Old trees store less carbon'],
    ['missing', 'Old trees store more car'],
    ['missing', 'Its wellknownoaks stand at'],
    ['missing', 'Old trees storemore carbon'],
    ['missing', '5 degrees; 3.5 % of them'],
    ['missing', 'stand at 5 degrees; 3.5'],
    ['missing', '-5 degrees; 35 % of them'],
    ['missing', 'degrees; 3.5 of them are'],
    ['missing', 'very old, x = y, and'],
    ['missing', 'and COVID 19 came in'],
    ['missing', '若い木は古い木より多く'],
    ['exact', 'Old trees … grows slowly in the cold'],
    ['exact', 'Old trees [...] grows slowly (…) the cold ...'],
    ['missing', 'grows slowly in the cold ... Old trees store'],
    ['missing', 'grows slowly … grows slowly in'],
    ['missing', '… “?!” …'],
  ];
  for (const [verdict, quoted] of cases) {
    it(`is ${verdict}: ${quoted}`, async () => expect(await judged(quoted)).to.equal(verdict));
  }

  it('is exact if a later place has its signs', async () => {
    expect(await judged('Trees are very old', 'TREES ARE VERY OLD. Trees are very old.')).to.equal('exact');
  });

  it('may run over the end of its page, past running heads and page numbers', async () => {
    const text = 'The first of all. The trees of the\nnorth are very beauti-\n12';
    const after = 'Journal of trees\nPage 13\nful in the spring, and old.\nThe end of this is far.';
    const judge = await quotationJudge({ before: 'The page before has\nits last words', text, after }, pause);
    expect(judge('north are very beautiful in the spring')).to.equal('near');
    expect(judge('its last words The first of all')).to.equal('exact');
    expect(judge('The trees of … ful in the spring')).to.not.equal('missing');
    expect(judge('in the spring, and old'), 'stands on the next page alone').to.equal('missing');
    expect(judge('The page before has its'), 'stands on the page before alone').to.equal('missing');
    expect(judge('north are very ugly in the spring')).to.equal('missing');
  });

  it('may run over the end of its page, past notes and figures', async () => {
    const text = 'The trees of the north are very\n\n7 A note that is long\nand has\nfour\nlines.\n\n12';
    const after = 'Figure 2\n1\n2\n3\n4\n\nOaks of the north by their age.\n\nold in the spring, and green.';
    const judge = await quotationJudge({ text, after }, pause);
    expect(judge('of the north are very old in the spring')).to.equal('exact');
    expect(judge('of the north are not very old in the spring')).to.equal('missing');
  });

  it('is looked up in linear time: 200 in each hostile page of 600,000 characters', async () => {
    const units = ['a ', `${'a '.repeat(40)}b `, '-', '東', 'a-', 'a', '\n', '5 ', `a-${' '.repeat(98)}`, 'x='];
    for (const unit of units) {
      const text = unit.repeat(600_000 / unit.length);
      const judge = await quotationJudge({ text, before: text, after: text }, pause);
      const before = process.cpuUsage();
      for (let at = 0; at < 200; at += 1) {
        const quoted = `${text.slice(0, 400)} … b ${text.slice(0, 200 + at)} b`;
        judge(quoted);
      }
      const { user } = process.cpuUsage(before);
      // In square time it would take minutes.
      expect(user / 1000, unit).to.be.lessThan(10_000);
    }
  });

  it('lets other work run while a large page is read', async () => {
    let pauses = 0;
    await quotationJudge({ text: 'a '.repeat(300_000) }, async () => void (pauses += 1));
    expect(pauses).to.be.greaterThan(50);
  });
});
