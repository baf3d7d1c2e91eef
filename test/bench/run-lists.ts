/** What a page of a list costs when there are many runs, by each way of asking for it. */
import { join } from 'node:path';
import type { RunFilter, RunListQuery } from '../../src/projections/run-list.js';
import { RUN_SORTS } from '../../src/projections/run-list.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import { nodeSystem } from '../../src/system/system.js';
import type { ViewsClient } from '../../src/projections/views/views-client.js';
import { openViews } from '../../src/projections/views/views-client.js';
import { elementAt } from '../../src/system/element.js';
import { summaryWith } from '../support/run-summaries.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { percentile } from './statistics.js';

const PAGE = 50;
/** Runs written in one transaction. */
const BATCH = 5_000;
/** Different words of all drafts, a few of them in most of the texts, and how many of them a draft has. */
const VOCABULARY = 50_000;
const DRAFT_WORDS = 60;
/** The goal for a page of 50 of a million runs, in milliseconds: see README.md. */
const TARGET_PAGE_MS = { atMost: 50 };

export const runListsPart: Part = {
  name: 'lists',
  method: ({ listedRuns, requests }) =>
    `A file of stored views with ${listedRuns.toLocaleString('en-US')} finished runs, written as the service writes them: ` +
    `500 blueprints, 50 actors, half points, one in 100 failed, drafts of ${DRAFT_WORDS} words out of ${VOCABULARY.toLocaleString('en-US')} that are ` +
    `as unevenly spread as those of a language. Then ${Math.min(requests, 100)} pages of ${PAGE} runs each way, one after the other, ` +
    'by a call to the worker; and a few counts.',
  async measure(effort) {
    const dir = tempDir();
    const fail = (error: unknown): never => {
      throw error;
    };
    const deps = { system: nodeSystem(), onLost: fail, onFault: fail, corruptRuns: () => [] };
    const log = { identity: 'bench', head: null };
    const views = await openViews({ file: join(dir.path, 'views.sqlite'), log }, deps);
    try {
      const writtenMs = await filled(views, effort.listedRuns);
      return [
        figure('lists: a run written', 'ms', [writtenMs / effort.listedRuns]),
        ...(await pageFigures(views, effort)),
        ...(await countFigures(views)),
      ];
    } finally {
      await views.close();
      dir.remove();
    }
  },
};

const START = Date.parse('2026-01-01T00:00:00.000Z');

/** @returns how long it took, in milliseconds */
async function filled(views: ViewsClient, count: number): Promise<number> {
  const random = seededRandom(15);
  let spentMs = 0;
  for (let from = 0; from < count; from += BATCH) {
    const runs = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => runAt(from + at, random));
    const startedMs = performance.now();
    await views.write({ runs, blueprints: [], documents: [] }, null);
    spentMs += performance.now() - startedMs;
  }
  return spentMs;
}

function runAt(index: number, random: () => number): RunSummary {
  const below = (bound: number): number => Math.floor(random() * bound);
  const word = (): string => wordOf(Math.floor(Math.exp(random() * Math.log(VOCABULARY))));
  const text = (words: number): string => Array.from({ length: words }, word).join(' ');
  const hex = below(2 ** 32)
    .toString(16)
    .padStart(8, '0');
  const isFailed = index % 100 === 7;
  // Nearly in order, as several instances record them.
  const createdAt = new Date(START + index * 20 + below(100)).toISOString();
  return summaryWith(`${hex}-0000-4000-8000-${index.toString(16).padStart(12, '0')}`, {
    status: isFailed ? 'failed' : index % 1_000 === 3 ? 'paused' : 'completed',
    blueprintId: below(3) === 0 ? null : `blueprint ${below(500)}`,
    actor: `actor ${below(50)}`,
    parent: below(50) === 0 ? `parent ${below(1_000)}` : null,
    criticScore: below(21) / 2,
    inputTopic: `${text(4)} topic${index}`,
    finalDraft: isFailed ? null : text(DRAFT_WORDS),
    waitingSince: index % 1_000 === 3 ? createdAt : null,
    createdAt,
    completedAt: createdAt,
  });
}

/** Words of letters alone, each of its own. */
function wordOf(rank: number): string {
  return `w${rank.toString(26).replaceAll(/\d/g, (digit) => 'qrstuvwxyz'.charAt(Number(digit)))}`;
}

async function pageFigures(views: ViewsClient, { listedRuns, requests }: Effort): Promise<readonly Figure[]> {
  const middle = new Date(START + listedRuns * 10).toISOString();
  const asked: readonly [string, Omit<RunListQuery, 'limit' | 'offset'>][] = [
    ...RUN_SORTS.map((sort): [string, RunListQuery] => [`all, ${sort}`, { sort, limit: 0, offset: 0 }]),
    ...Object.entries(filters(middle)).map(([name, filter]): [string, { filter: RunFilter }] => [name, { filter }]),
    ['from the middle on, by cursor', { after: { value: null, createdAt: middle, id: '' } }],
    ['a status, best first', { filter: { status: 'failed' }, sort: '-score' }],
    ['a word of one in a hundred, best first', { filter: { q: wordOf(50) }, sort: '-score' }],
    ['a common word, oldest first', { filter: { q: wordOf(1) }, sort: 'created_at' }],
    [
      'a common word from the middle on',
      { filter: { q: wordOf(1) }, after: { value: null, createdAt: middle, id: '' } },
    ],
  ];
  const figures: Figure[] = [];
  for (const [name, query] of asked) {
    const times: number[] = [];
    for (let count = 0; count < Math.min(requests, 100); count += 1) {
      times.push(await timeOf(() => views.list({ ...query, limit: PAGE, offset: 0 })));
    }
    const isSingle = Object.keys(query.filter ?? {}).length <= 1;
    figures.push(figure(`lists: ${name}, p50`, 'ms', [percentile(times, 0.5)], isSingle ? TARGET_PAGE_MS : null));
    figures.push(figure(`lists: ${name}, slowest`, 'ms', [Math.max(...times)]));
  }
  return figures;
}

function filters(middle: string): Readonly<Record<string, RunFilter>> {
  return {
    'a common status': { status: 'completed' },
    'a rare status': { status: 'failed' },
    'a blueprint': { blueprintId: 'blueprint 7' },
    'an actor': { actor: 'actor 7' },
    'a parent': { parent: 'parent 7' },
    'until the middle': { to: middle },
    'a score of 8 or more': { minScore: 8 },
    'a score within bounds': { minScore: 2, maxScore: 9.5 },
    'a common word': { q: wordOf(1) },
    'a word of one in a hundred': { q: wordOf(50) },
    'a rare word': { q: wordOf(VOCABULARY - 5) },
    'a word of one topic': { q: 'topic1234' },
    'a beginning of words': { q: 'www*' },
    'three words': { q: [1, 40, 900].map(wordOf).join(' ') },
    'a word, a blueprint, a score and a status': {
      q: wordOf(3),
      blueprintId: 'blueprint 7',
      minScore: 5,
      status: 'completed',
    },
    'an actor and a status': { actor: 'actor 7', status: 'failed' },
  };
}

async function countFigures(views: ViewsClient): Promise<readonly Figure[]> {
  const counted: readonly [string, RunFilter][] = [
    ['all', {}],
    ['a common status', { status: 'completed' }],
    ['a common word', { q: wordOf(1) }],
    ['a word and a status', { q: wordOf(1), status: 'completed' }],
    ['a score and a status', { minScore: 5, status: 'completed' }],
  ];
  const figures: Figure[] = [];
  for (const [name, filter] of counted) {
    const times = [];
    for (let count = 0; count < 5; count += 1) times.push(await timeOf(() => views.count(filter)));
    figures.push(
      figure(`lists: count of ${name}, p50`, 'ms', [
        elementAt(
          times.toSorted((a, b) => a - b),
          2,
        ),
      ]),
    );
  }
  return figures;
}

async function timeOf(act: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await act();
  return performance.now() - from;
}
