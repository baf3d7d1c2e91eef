/** Measures pages of the list over very many runs, by filter and order. */
import { join } from 'node:path';
import type { RunListQuery } from '../../src/projections/run-list.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import { nodeSystem } from '../../src/system/system.js';
import type { ViewsClient } from '../../src/projections/views/views-client.js';
import { openViews } from '../../src/projections/views/views-client.js';
import { summaryWith, usageWith } from '../support/run-summaries.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { closedLoop } from './closed-loop.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { percentile } from './statistics.js';

const PAGE = 50;
/** Runs written in one transaction. */
const BATCH = 5_000;
/** Distinct words of all drafts, and words of one draft. */
const VOCABULARY = 50_000;
const DRAFT_WORDS = 60;
const TARGET = { atMost: 50 };

export const listsPart: Part = {
  name: 'lists',
  method: ({ listedRuns, requests }) =>
    `Stored views of ${listedRuns.toLocaleString('en-US')} runs, written as the service writes them: 500 blueprints, ` +
    `50 actors, half points, one in 100 failed, one in 50 paused, drafts of ${DRAFT_WORDS} words out of ` +
    `${VOCABULARY.toLocaleString('en-US')} whose frequencies follow those of a language, 8 models, over a year. Then ${requests} pages of ${PAGE} ` +
    'runs for each query, and overviews of the year, one after the other, by a call to the worker.',
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
        ...(await overviewFigures(views, effort)),
      ];
    } finally {
      await views.close();
      dir.remove();
    }
  },
};

const START = Date.parse('2026-01-01T00:00:00.000Z');
/** Between the starts of two runs: a million runs in a year. */
const INTERVAL_MS = 31_536;
const YEAR = ['2026-01-01', '2026-12-31'] as const;

/** Returns the milliseconds spent on writing. */
async function filled(views: ViewsClient, count: number): Promise<number> {
  const random = seededRandom(15);
  let spentMs = 0;
  for (let from = 0; from < count; from += BATCH) {
    const runs = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => runAt(from + at, random));
    const startedMs = performance.now();
    await views.write({ runs, blueprints: [], documents: [], leaves: [] }, null);
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
  const isPaused = index % 50 === 3;
  // Nearly in order, as several instances record them.
  const createdAt = new Date(START + index * INTERVAL_MS + below(5 * INTERVAL_MS)).toISOString();
  return summaryWith(`${hex}-0000-4000-8000-${index.toString(16).padStart(12, '0')}`, {
    status: isFailed ? 'failed' : isPaused ? 'paused' : 'completed',
    blueprintId: below(3) === 0 ? null : `blueprint ${below(500)}`,
    actor: `actor ${below(50)}`,
    parent: below(50) === 0 ? `parent ${below(1_000)}` : null,
    criticScore: below(21) / 2,
    inputTopic: `${text(4)} topic${index}`,
    finalDraft: isFailed || isPaused ? null : text(DRAFT_WORDS),
    waitingSince: isPaused ? createdAt : null,
    createdAt,
    completedAt: isPaused ? null : endAfter(createdAt, random),
    usage: usageWith(`provider/model ${below(8)}`, {
      inputTokens: below(9_000),
      outputTokens: below(3_000),
      costUsd: random(),
    }),
  });
}

function endAfter(createdAt: string, random: () => number): string {
  return new Date(Date.parse(createdAt) + Math.floor(Math.exp(8 + 4 * random()))).toISOString();
}

/** A word of letters only, distinct for each rank. */
function wordOf(rank: number): string {
  return `w${rank.toString(26).replaceAll(/\d/g, (digit) => 'qrstuvwxyz'.charAt(Number(digit)))}`;
}

async function pageFigures(views: ViewsClient, { listedRuns, requests }: Effort): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [name, query] of Object.entries(queriesOf(listedRuns))) {
    const { latenciesMs } = await closedLoop({
      clients: 1,
      goesOn: (acts) => acts < requests,
      act: async () => {
        await views.list({ ...query, limit: PAGE, offset: 0 });
      },
    });
    figures.push(figure(`lists: ${name}, p50`, 'ms', [percentile(latenciesMs, 0.5)], TARGET));
    figures.push(figure(`lists: ${name}, slowest`, 'ms', [percentile(latenciesMs, 1)]));
  }
  return figures;
}

async function overviewFigures(views: ViewsClient, { requests }: Effort): Promise<readonly Figure[]> {
  const { latenciesMs } = await closedLoop({
    clients: 1,
    goesOn: (acts) => acts < requests,
    act: async () => {
      await views.overview({ days: YEAR, waitingSince: [new Date(START).toISOString()] });
    },
  });
  const target = { atMost: 300 };
  return [
    figure('lists: overview of all runs, p50', 'ms', [percentile(latenciesMs, 0.5)], target),
    figure('lists: overview of all runs, slowest', 'ms', [percentile(latenciesMs, 1)]),
  ];
}

function queriesOf(listedRuns: number): Readonly<Record<string, Omit<RunListQuery, 'limit' | 'offset'>>> {
  const middle = new Date(START + (listedRuns * INTERVAL_MS) / 2).toISOString();
  return {
    'all, newest first': {},
    'all, best first': { sort: '-score' },
    'from the middle on, by cursor': { after: { value: null, createdAt: middle, id: '' } },
    'a rare status': { filter: { status: 'failed' } },
    'a rare status, best first': { filter: { status: 'failed' }, sort: '-score' },
    'a blueprint': { filter: { blueprintId: 'blueprint 7' } },
    'until the middle': { filter: { to: middle } },
    'a score within bounds': { filter: { minScore: 2, maxScore: 9.5 } },
    'an actor and a status': { filter: { actor: 'actor 7', status: 'failed' } },
    'a common word': { filter: { q: wordOf(1) } },
    'a common word, oldest first': { filter: { q: wordOf(1) }, sort: 'created_at' },
    'a word of one in a hundred, best first': { filter: { q: wordOf(50) }, sort: '-score' },
    'a word of one topic': { filter: { q: 'topic1234' } },
    'a beginning of words': { filter: { q: 'www*' } },
    'completed, best first': { filter: { status: 'completed' }, sort: '-score' },
    'paused, longest first': { filter: { status: 'paused' }, sort: '-duration' },
    'two words and a rare status': { filter: { q: [1, 40].map(wordOf).join(' '), status: 'failed' } },
    'a common word of a blueprint': { filter: { q: wordOf(1), blueprintId: 'blueprint 7' } },
    'a common word, longest first': { filter: { q: wordOf(1) }, sort: '-duration' },
    'three words': { filter: { q: [1, 40, 900].map(wordOf).join(' ') } },
  };
}
