import { expect } from 'chai';
import { join } from 'node:path';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { elementAt } from '../../../src/system/element.js';
import type { RunFilter, RunListQuery, RunSort } from '../../../src/projections/run-list.js';
import { RUN_SORTS, placeOf } from '../../../src/projections/run-list.js';
import type { RunSummary } from '../../../src/projections/run-summary.js';
import { createViewsFile } from '../../../src/projections/views/views-file.js';
import type { ViewsStore } from '../../../src/projections/views/views-store.js';
import { viewsStore } from '../../../src/projections/views/views-store.js';
import { hostileTexts } from '../../support/hostile-texts.js';
import { summaryWith, usageWith } from '../../support/run-summaries.js';
import { seededRandom } from '../../support/seeded-random.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { IS_SOAK } from '../../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20261123);
const QUERIES = IS_SOAK ? 10_000 : 25;
/** More runs than the search looks at first for words. */
const RUNS = IS_SOAK ? 30_000 : 22_000;
const WORDS = ['tree', 'trees', 'river', 'sea', 'stone', 'wind', 'rain', 'treaty'];
const OUTCOMES = ['completed', 'failed', 'rejected', 'cancelled'] as const;
const STATUSES = ['pending', 'running', 'paused', 'completed', 'failed'] as const;
const ALL = 1_000_000;

describe(`Search for runs (SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  const below = (bound: number): number => Math.floor(random() * bound);
  const oneOf = <T>(list: readonly T[]): T => elementAt(list, below(list.length));
  let dir: TempDir;
  let store: ViewsStore;
  /** The recorded SQL statements. */
  let asked: { readonly sql: string; readonly values: readonly (string | number)[] }[];
  let database: DatabaseSyncInstance;

  beforeEach(() => {
    dir = tempDir();
    asked = [];
    database = createViewsFile(join(dir.path, 'views.sqlite'), { identity: 'log' });
    store = viewsStore(recording(database), join(dir.path, 'views.sqlite'));
  });
  afterEach(() => {
    store.close();
    dir.remove();
  });

  /** A database that records its SQL statements. */
  function recording(opened: DatabaseSyncInstance): DatabaseSyncInstance {
    const prepare = (sql: string) =>
      through(opened.prepare(sql), (name, values) => {
        if (name === 'all' || name === 'get') asked.push({ sql, values });
      });
    return new Proxy(through(opened), {
      get: (target, name): unknown => (name === 'prepare' ? prepare : Reflect.get(target, name)),
    });
  }

  const write = (...runs: readonly RunSummary[]): void =>
    store.write({ runs, blueprints: [], documents: [], leaves: [] }, null);
  const idsOf = (query: Partial<RunListQuery>): readonly string[] =>
    store.list({ limit: ALL, offset: 0, ...query }).map(({ id }) => id);
  const found = (q: string): readonly string[] => idsOf({ filter: { q } });

  function someWords(most: number): string {
    return Array.from({ length: 1 + below(most) }, () => oneOf(WORDS)).join(' ');
  }

  function someRun(index: number): RunSummary {
    const status = oneOf(STATUSES);
    const isOver = status === 'completed';
    return summaryWith(`${below(1e9)}-${index}`, {
      status,
      failureKind: status === 'failed' ? oneOf(['rejected', 'cancelled', 'node_failed', null]) : null,
      createdAt: new Date(1_700_000_000_000 + 10 * index + below(200) - (below(50) === 0 ? 5_000 : 0)).toISOString(),
      ...someFigures(),
      ...oneOf([
        { blueprintId: oneOf([null, 'a', 'b', 'rare'.slice(0, below(20) === 0 ? 4 : 3)]) },
        { blueprintId: null, isTrial: below(4) === 0 },
      ]),
      completedAt: isOver ? new Date(1_700_000_000_000 + 1e9 * below(9)).toISOString() : null,
      actor: oneOf([null, null, 'ann', 'ben']),
      parent: below(10) === 0 ? oneOf(['p', 'q']) : null,
      inputTopic: below(50) === 0 ? someWords(2) : `the ${someWords(2)}`,
      finalDraft: isOver ? someWords(3) : null,
      waitingSince: status === 'paused' ? new Date(1_700_000_000_000 + below(1e6)).toISOString() : null,
    });
  }

  function someFigures(): Partial<RunSummary> {
    return {
      criticScore: below(4) === 0 ? null : below(20) === 0 ? random() * 10 : below(21) / 2,
      usage: below(4) === 0 ? null : usageWith('oak', { costUsd: below(4) === 0 ? null : below(30) / 10 }),
      iterationCount: below(3) === 0 ? null : below(6),
    };
  }

  function someFilter(runs: readonly RunSummary[]): RunFilter {
    const time = (): string => oneOf(runs).createdAt;
    const perhaps = <T>(made: () => T): T | undefined => (below(3) === 0 ? made() : undefined);
    const filter = {
      status: perhaps(() => oneOf(STATUSES)),
      outcome: below(4) === 0 ? oneOf(OUTCOMES) : undefined,
      blueprintId: perhaps(() => oneOf(['a', 'b', 'rar', 'rare', 'none'])),
      actor: perhaps(() => oneOf(['ann', 'ben', 'nobody'])),
      parent: below(8) === 0 ? oneOf(['p', 'q', 'r']) : undefined,
      from: perhaps(time),
      to: perhaps(time),
      isTrial: perhaps(() => oneOf([true, false])),
      isBuiltIn: below(6) === 0 ? true : undefined,
      minScore: perhaps(() => below(21) / 2),
      maxScore: perhaps(() => below(21) / 2),
      q: perhaps(() =>
        oneOf([...WORDS, 'the', 'The tree*', 'th*', 'the*', 'TREE sea', 'tre*', 'rain wi*', 'nothing', '"', '*']),
      ),
    };
    return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
  }

  it('lists and counts all matching runs in order, at once and page by page', () => {
    let runs = Array.from({ length: RUNS }, (_, index) => someRun(index));
    write(...runs.slice(0, RUNS / 2));
    write(...runs.slice(RUNS / 2));
    // Runs continue, so that their values change.
    const later = runs.map((run, index) =>
      run.finalDraft === null && below(2) === 0 ? { ...someRun(index), ...beginningOf(run) } : run,
    );
    write(...later.filter((run, index) => run !== runs[index]));
    runs = later;
    for (let round = 0; round < QUERIES; round += 1) {
      const filter = someFilter(runs);
      const sort = elementAt(RUN_SORTS, round % RUN_SORTS.length);
      const told = JSON.stringify({ filter, sort });
      const wanted = expected(runs, filter, sort);
      const ids = wanted.map(({ id }) => id);
      expect(idsOf({ filter, sort }), told).to.deep.equal(ids);
      expect(store.count(filter), told).to.equal(ids.length);
      const [limit, offset] = [1 + below(40), below(wanted.length + 2)];
      expect(idsOf({ filter, sort, limit, offset }), told).to.deep.equal(ids.slice(offset, offset + limit));
      const last = wanted[offset];
      if (last === undefined) continue;
      const after = placeOf(last, sort);
      const page = idsOf({ filter, sort, limit, after });
      expect(page, told).to.deep.equal(ids.slice(offset + 1, offset + 1 + limit));
      expect(idsOf({ filter, sort, limit, offset: 3, after }), told).to.deep.equal(
        ids.slice(offset + 4, offset + 4 + limit),
      );
    }
  });

  it('uses indexes, never a table scan', () => {
    const runs = Array.from({ length: 3_000 }, (_, index) => someRun(index));
    write(...runs);
    const [one, other] = [runs[10] ?? expect.fail(), runs[2_000] ?? expect.fail()];
    const single: readonly RunFilter[] = [
      ...STATUSES.map((status) => ({ status })),
      ...OUTCOMES.map((outcome) => ({ outcome })),
      ...[{ blueprintId: 'a' }, { blueprintId: 'none' }, { actor: 'ann' }, { parent: 'p' }],
      ...[{ from: one.createdAt }, { to: other.createdAt }, { from: one.createdAt, to: other.createdAt }],
      ...([{ isTrial: true }, { isBuiltIn: true }] as const),
      ...[{ minScore: 8 }, { maxScore: 3 }, { minScore: 4, maxScore: 6 }, { q: 'tree' }, { q: 'sea ston*' }, {}],
    ];
    for (const filter of single) {
      const isEmpty = Object.keys(filter).length === 0;
      const isByTime = !['minScore', 'maxScore', 'q'].some((name) => name in filter);
      for (const sort of RUN_SORTS) {
        for (const after of [undefined, placeOf(other, sort)]) {
          const isByValue = !sort.endsWith('created_at');
          asked = [];
          store.list({ filter, sort, limit: 50, offset: 0, ...(after && { after }) });
          store.count(filter);
          const plans = asked.flatMap(planOf);
          expect(plans).not.to.be.empty;
          for (const step of plans) {
            const told = `${JSON.stringify({ filter, sort, after })}: ${plans.join('; ')}`;
            expect(/SCAN (facets|runs)(?! USING)/.test(step), told).to.equal(false);
            // Matching runs may be sorted if their index has another order. Otherwise only ties may be sorted.
            const isInOrder = isByValue ? isEmpty : isEmpty || isByTime;
            expect(step === 'USE TEMP B-TREE FOR ORDER BY' && isInOrder, told).to.equal(false);
          }
        }
      }
    }
  });

  function planOf({ sql, values }: (typeof asked)[number]): readonly string[] {
    const rows: unknown[] = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    return rows.map((row) => String(Reflect.get(Object(row), 'detail')));
  }

  it('finds words of the topic at once, and words of the final draft after the end', () => {
    const run = summaryWith('one', { inputTopic: 'On trees', status: 'running' });
    write(run);
    expect(found('trees')).to.deep.equal(['one']);
    expect(found('forest')).to.deep.equal([]);
    write({ ...run, seq: 9, status: 'completed', finalDraft: 'A forest.' });
    for (const q of ['trees', 'forest', 'trees forest', 'FOREST, trees?', 'for* tre*'])
      expect(found(q), q).to.deep.equal(['one']);
    for (const q of ['tree', 'fo*', 'trees river']) expect(found(q), q).to.deep.equal([]);
  });

  for (const [form, topic, queries] of [
    ['one character of a script without spaces', '東京の木', ['木', '東', '京', 'の', '東京', '木 東京']],
    ['a character that ends a text of two', '京都', ['都', '京都']],
    ['a syllable of Hangul, a character of Thai', '한국어 ไทย', ['국', '한', 'ท']],
    ['ss for ß and its upper case', 'Straße GROẞE Weiss', ['strasse', 'STRASSE', 'straße', 'STRAẞE', 'grosse', 'weiß']],
    ['niqqud', 'שָׁלוֹם עֲלֵיכֶם', ['שלום', 'שָׁלוֹם', 'עליכם', 'עלי*']],
    ['tashkil and tatweel', 'السَّلَامُ عَلَيْكُمْ مـــرحبا', ['السلام', 'السَّلَامُ', 'عليكم', 'مرحبا']],
    ['letters of Arabic that carry a hamza or madda', 'أحمد إلى القرآن', ['احمد', 'الى', 'القران', 'القرآن']],
    ['soft hyphens', 'Donau\u00addampf\u00adschiff', ['donaudampfschiff', 'donau\u00addampfschiff', 'donaud*']],
    [
      'zero-width characters',
      'for\u200best \u2060ri\ufeffver\u200d',
      ['forest', 'river', 'fo\ufeffrest', 'riv\u200ber'],
    ],
    ['a zero-width non-joiner of Persian', 'می\u200cخواهم', ['میخواهم', 'می\u200cخواهم']],
    [
      'composed and decomposed forms',
      'Ame\u0301lie A\u030angstro\u0308m',
      ['amélie', 'AMELIE', 'ångström', 'Ångström'],
    ],
    ['full-width and half-width forms', 'ＴＲＥＥ ｶﾞﾗｽ ５', ['tree', 'ガラス', 'ガ', '5', 'ｔｒｅｅ', 'ｔｒｅ＊']],
    [
      'Turkish dotted and dotless i',
      'İstanbul ILIK ılık',
      ['istanbul', 'İSTANBUL', 'ISTANBUL', 'ılık', 'ilik', 'ILIK'],
    ],
    ['final sigma', 'ΟΔΟΣ Ἀθῆναι', ['οδος', 'οδοσ', 'ΟΔΟΣ', 'ὁδός', 'οδοσ*', 'αθηναι']],
    [
      'ligatures and letters with a stroke',
      'ﬁre Łódź Ørsted Æon cœur',
      ['fire', 'lodz', 'orsted', 'aeon', 'coeur', 'ŁÓDŹ'],
    ],
    ['accents of letters in upper case', 'ÉCOLE', ['école', 'ecole', 'E\u0301cole']],
  ] as const) {
    it(`finds ${form}`, () => {
      write(summaryWith('one', { inputTopic: topic }), summaryWith('other', { inputTopic: 'another text' }));
      for (const q of queries) {
        expect(found(q), q).to.deep.equal(['one']);
        expect(store.count({ q }), q).to.equal(1);
      }
    });
  }

  it('does not find other words of the same script', () => {
    write(summaryWith('one', { inputTopic: 'カラス हिंदी 東京' }));
    for (const q of ['ガラス', 'हदी', '京東', '都']) expect(found(q), q).to.deep.equal([]);
  });

  it('finds the words of hostile queries without an error', () => {
    write(summaryWith('one', { inputTopic: 'alpha beta NEAR AND OR NOT' }));
    const syntax = [
      ...`" "" ' * ^ ( ) OR NOT text:alpha {text}:a -a + -- alpha" "alpha % _ \\ \0 a\0b \u{1F600} \ud800`.split(' '),
      ...['a AND', 'NEAR(a b)', 'alpha OR zzz', 'alpha NOT beta', '; DROP TABLE facets', '*'.repeat(500)],
      ...['e\u0301'.repeat(400), 'x'.repeat(1_000), 'w '.repeat(500)],
    ];
    for (const q of [...syntax, ...hostileTexts()]) {
      expect(() => found(q), JSON.stringify(q)).not.to.throw();
      expect(store.count({ q })).to.equal(found(q).length);
    }
    expect(found('alpha" beta')).to.deep.equal(['one']);
    expect(found('near and')).to.deep.equal(['one']);
    expect(found('alpha OR zzz')).to.deep.equal([]);
    expect(found('!!!')).to.deep.equal([]);
  });

  it('finds a corrupt run by the values in the list, and a repaired run by its own values', () => {
    const run = summaryWith('one', { status: 'completed', criticScore: 9, inputTopic: 'Trees', finalDraft: 'Rivers' });
    const shown = (): readonly boolean[] =>
      [{ status: 'completed' }, { minScore: 1 }, { q: 'rivers' }, { status: 'failed' }, { q: 'trees' }].map(
        (filter) => idsOf({ filter: filter as RunFilter }).length === 1 && store.count(filter as RunFilter) === 1,
      );
    const [sound, damaged] = [
      [true, true, true, false, true],
      [false, false, false, true, true],
    ];
    const corruption = { runId: 'one', seq: 1, reason: 'spoilt' };
    write(run);
    expect(shown()).to.deep.equal(sound);
    store.saveCorrupt(corruption);
    expect(shown()).to.deep.equal(damaged);
    write({ ...run, seq: 12 });
    expect(shown()).to.deep.equal(damaged);
    store.removeCorrupt('one');
    expect(shown()).to.deep.equal(sound);
    store.saveCorrupt({ ...corruption, runId: 'two' });
    write({ ...run, id: 'two' });
    store.removeCorrupt('one');
    expect(idsOf({ filter: { status: 'failed' } })).to.deep.equal(['two']);
  });
});

/** The same object, which reports its calls. */
function through<T extends object>(
  object: T,
  onCall: (name: string | symbol, values: readonly (string | number)[]) => void = () => undefined,
): T {
  return new Proxy(object, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...values: (string | number)[]): unknown => {
        onCall(name, values);
        return Reflect.apply(member, target, values);
      };
    },
  });
}

function beginningOf(run: RunSummary): Partial<RunSummary> {
  const { id, createdAt, blueprintId, actor, parent, inputTopic, isTrial } = run;
  return { id, createdAt, blueprintId, actor, parent, inputTopic, isTrial };
}

/** The expected list: filters and sorts all runs. */
function expected(runs: readonly RunSummary[], filter: RunFilter, sort: RunSort): readonly RunSummary[] {
  return runs.filter((run) => fits(run, filter)).sort((one, other) => order(one, other, sort));
}

function fits(run: RunSummary, filter: RunFilter): boolean {
  const { status, outcome, blueprintId, actor, parent, from, to, minScore, maxScore, q, isTrial, isBuiltIn } = filter;
  const isEqual = <T>(wanted: T | undefined, value: T): boolean => wanted === undefined || value === wanted;
  return [
    isEqual<string>(status, run.status),
    isEqual<string | null>(outcome, outcomeOf(run)),
    isEqual<string | null>(blueprintId, run.blueprintId),
    isEqual<string | null>(actor, run.actor),
    isEqual<string | null>(parent, run.parent),
    isEqual<boolean>(isTrial, run.isTrial),
    isEqual<boolean>(isBuiltIn, run.blueprintId === null && !run.isTrial),
    isWithin(run.createdAt, from, to),
    isWithin(run.criticScore, minScore, maxScore),
    q === undefined || hasWords(`${run.inputTopic} ${run.finalDraft ?? ''}`, q),
  ].every(Boolean);
}

function outcomeOf({ status, failureKind }: RunSummary): string | null {
  if (status === 'completed') return 'completed';
  if (status !== 'failed') return null;
  return failureKind === 'rejected' || failureKind === 'cancelled' ? failureKind : 'failed';
}

function isWithin<T extends string | number>(value: T | null, low: T | undefined, high: T | undefined): boolean {
  if (value === null) return low === undefined && high === undefined;
  return (low === undefined || value >= low) && (high === undefined || value <= high);
}

function hasWords(text: string, q: string): boolean {
  const words = text.split(' ');
  const wanted = q
    .toLowerCase()
    .split(' ')
    .filter((each) => /[a-z]/.test(each));
  if (wanted.length === 0) return false;
  return wanted.every((each) =>
    each.endsWith('*') && each.length > 3
      ? words.some((word) => word.startsWith(each.slice(0, -1)))
      : words.includes(each.replace('*', '')),
  );
}

function order(one: RunSummary, other: RunSummary, sort: RunSort): number {
  const isAscending = !sort.startsWith('-') && sort !== 'waiting';
  const times = compare(one.createdAt, other.createdAt) * (isAscending ? 1 : -1);
  const sign = sort.startsWith('-') ? -1 : 1;
  return byValue(valueOf(one, sort), valueOf(other, sort), sign) || times || compare(one.id, other.id);
}

function valueOf(run: RunSummary, sort: RunSort): string | number | null {
  const values: Readonly<Record<string, string | number | null>> = {
    score: run.criticScore,
    cost: run.usage?.costUsd ?? null,
    duration: run.completedAt === null ? null : Math.max(0, Date.parse(run.completedAt) - Date.parse(run.createdAt)),
    iterations: run.iterationCount,
    waiting: run.waitingSince,
  };
  return values[sort.replace('-', '')] ?? null;
}

function byValue<T extends string | number>(one: T | null, other: T | null, sign: 1 | -1): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  return compare(one, other) * sign;
}

function compare<T extends string | number>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
