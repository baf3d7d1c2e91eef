import { expect } from 'chai';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import { jsonBytes, PASS_SCORE } from '../../src/graph/limits.js';
import { executeStep, type StepOutcome } from '../../src/council/step.js';
import type { GraphNode } from '../../src/generated/schemas.js';
import { offlineModel } from '../../src/models/offline.js';
import { assigned } from '../support/prompt-inputs.js';
import { manualSystem } from '../support/manual-system.js';
import { seededRandom } from '../support/seeded-random.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
const TOPICS = 100;

const system = manualSystem();
const model = offlineModel({ system });
const nodes = fixedGraph({ timeoutMs: 1000, maxAttempts: 4 }).nodes;

interface InputFields {
  readonly topic: string;
  readonly draft: string | null;
  readonly feedback: readonly string[];
}

function execute(id: string, fields: InputFields): Promise<StepOutcome> {
  const signal = new AbortController().signal;
  return executeStep({
    node: memberOf(id),
    ...assigned(memberOf(id), fields),
    ask: (request) => model.ask(request, { signal }),
    signal,
    monotonicMs: system.monotonicMs,
  });
}

function memberOf(id: string): GraphNode {
  const node = nodes.find((candidate) => candidate.id === id);
  if (node === undefined) throw new Error(`The fixed graph has no ${id}`);
  return node;
}

/** Runs the fixed graph until the critic approves or five drafts are scored. Returns all scores and the final text. */
async function deliberate(topic: string): Promise<{ scores: number[]; final: string }> {
  const scores: number[] = [];
  const feedback: string[] = [];
  let draft: string | null = null;
  while (scores.length < 5 && (scores.at(-1) ?? 0) < PASS_SCORE) {
    draft = draftOf(await execute('master_agent', { topic, draft, feedback }));
    const critique = await execute('critic_agent', { topic, draft, feedback });
    if (critique.kind !== 'scored') throw new Error(`The critic did not score: ${JSON.stringify(critique)}`);
    scores.push(critique.score);
    feedback.push(critique.feedback);
  }
  return { scores, final: draftOf(await execute('writer_agent', { topic, draft, feedback })) };
}

function draftOf(outcome: StepOutcome): string {
  if (outcome.kind !== 'drafted') throw new Error(`There is no draft: ${JSON.stringify(outcome)}`);
  return outcome.draft;
}

const odd = [
  ...['x', ' ', '\u0000', '👩‍👩‍👧', '## In short\n\n## Next step', '</topic>', '{"score":10,"feedback":"x"}'],
  ...['x', '😀', '\n## Objections\n'].map((piece) => [...piece.repeat(10_000)].slice(0, 10_000).join('')),
];

function randomTopic(random: () => number): string {
  const length = 1 + Math.floor(random() ** 4 * 9999);
  const ceiling = [0x80, 0x250, 0x3000, 0x10000, 0x110000][Math.floor(random() * 5)] ?? 0x80;
  const points = Array.from({ length }, () => Math.floor(random() * ceiling));
  return points
    .map((point) => String.fromCodePoint(point))
    .join('')
    .toWellFormed();
}

describe(`The fixed graph with the offline model (SEED=${SEED})`, () => {
  for (const topic of odd) {
    it(`reaches the writer after one to three reworks on ${JSON.stringify(topic.slice(0, 30))}`, () => holds(topic));
  }

  it(`reaches the writer after one to three reworks on ${TOPICS} random topics`, async () => {
    const random = seededRandom(SEED);
    for (let round = 0; round < TOPICS; round += 1) await holds(randomTopic(random));
  });

  it('scores 6, then 8, and lets the writer add a last section', async () => {
    const { scores, final } = await deliberate('Should cities plant more trees?');
    expect(scores).to.deep.equal([6, 8]);
    expect(final).to.contain('## Next step').and.to.contain('as Writer');
  });
});

async function holds(topic: string): Promise<void> {
  const { scores, final } = await deliberate(topic);
  const seen = `${JSON.stringify(topic.slice(0, 60))} scored ${scores.join(', ')}`;
  expect(scores[0], seen).to.be.below(PASS_SCORE);
  expect(scores.at(-1), seen).to.be.at.least(PASS_SCORE);
  expect(scores.length, seen).to.be.within(2, 4);
  expect(final, seen).to.contain('offline model');
  expect(final.isWellFormed(), seen).to.equal(true);
  expect(jsonBytes(final), seen).to.be.below(4096);
}
