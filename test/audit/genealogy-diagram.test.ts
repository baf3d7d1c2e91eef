import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { genealogyDiagram } from '../../src/audit/diagrams.js';
import { genealogyOf } from '../../src/audit/genealogy.js';
import type { Genealogy } from '../../src/generated/schemas.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { RunEvent } from '../../src/run/events.js';
import { compileChart } from '../../src/run/chart/machine.js';
import { stateValueOf } from '../../src/audit/chart.js';
import type { Story } from '../support/given.js';
import { broke, given, graphWith, RUN_ID, scored, wrote } from '../support/given.js';
import { hostileTexts } from '../support/hostile-texts.js';
import { randomStory } from '../support/random-history.js';
import { finalDraftOf } from '../../src/run/state.js';

const { sha256 } = nodeSystem();
const SEEDS = Array.from({ length: 60 }, (_, index) => 20260200 + index);

async function genealogy({ events }: Story): Promise<Genealogy> {
  const result = await genealogyOf(RUN_ID, each(events), { sha256, canonical });
  if (result === null) throw new Error('There are no events');
  return result;
}

async function* each(events: readonly RunEvent[]) {
  yield* events;
}

/** A box, or an arrow between names. */
const LABEL = '(?:[\\p{L}\\p{N} ,…]|#\\d+;|<br/>)*';
const BOX = `\\w+(?:\\[|\\[\\[|\\[/|\\[\\(|\\(|\\(\\[|\\{\\{|>)"${LABEL}"(?:\\]|\\]\\]|/\\]|\\)\\]|\\)|\\]\\)|\\}\\})`;
const LINE = new RegExp(`^(?:flowchart TD|  (?:${BOX}|\\w+ (?:-->|-\\.->|==>) \\w+)|)$`, 'u');

function expectDrawn(result: Genealogy): void {
  const lines = genealogyDiagram(result).split('\n');
  for (const line of lines) expect(line).to.match(LINE);
  const boxes = lines.flatMap((line) => /^ {2}(\w+)\W*"/.exec(line)?.[1] ?? []);
  expect(new Set(boxes).size, 'names').to.equal(boxes.length);
  const arrows = lines.flatMap((line) => {
    const [, from, to] = /^ {2}(\w+) \S+ (\w+)$/.exec(line) ?? [];
    return from === undefined || to === undefined ? [] : [from, to];
  });
  expect(boxes).to.include.members(arrows);
}

describe('A genealogy', () => {
  it('of any history contains every draft, refers only to earlier drafts, and is drawn completely', async () => {
    let joined = 0;
    for (const seed of SEEDS) {
      const story = randomStory(seed);
      const result = await genealogy(story);
      const seqs = new Map([...result.drafts, ...result.feedback].map(({ id, seq }) => [id, seq]));
      expect(seqs.size, `seed ${seed}`).to.equal(result.drafts.length + result.feedback.length);
      for (const { id, seq, parents } of result.drafts) {
        for (const parent of [...parents.drafts, ...parents.feedback]) {
          expect(seqs.get(parent), `${seed}: ${parent} of ${id}`).to.be.a('number').and.at.most(seq);
        }
      }
      const written = story.events.flatMap(({ type, data, seq }) =>
        type === 'NodeCompleted' && 'draft' in data.output ? [`${seq} ${sha256(data.output.draft)}`] : [],
      );
      const drafts = result.drafts.filter(({ kind }) => kind === 'written');
      expect(drafts.map(({ seq, hash }) => `${seq} ${hash}`)).to.deep.equal(written);
      joined += result.drafts.filter(({ kind }) => kind === 'joined').length;
      if (finalDraftOf(story.run) !== null) {
        const final = result.drafts.find(({ id }) => id === result.outcome?.final_draft);
        expect(final?.hash, `seed ${seed}`).to.equal(sha256(finalDraftOf(story.run) ?? ''));
      }
      expect(stateValueOf(story.run, compileChart(story.run.plan.graph))).to.deep.equal(story.snapshot.value);
      expectDrawn(result);
    }
    expect(joined).to.be.greaterThan(10);
  });

  it('encodes names, drafts, feedback and failures so that no parser reads them as syntax', async () => {
    for (const text of hostileTexts()) {
      const nodes = [{ id: text }, { id: `${text}?`, role: 'critic' as const }];
      const edges = [{ id: 'e', source: text, target: `${text}?`, condition: null }];
      const story = given(graphWith(nodes, edges)).whenAll(
        broke(text, 10),
        wrote(text, text),
        scored(`${text}?`, 9.5, text),
      );
      const result = await genealogy(story);
      expect(result.failures).to.have.lengthOf(1);
      expectDrawn(result);
      expect(genealogyDiagram(result)).not.to.match(/direction/i);
    }
  });
});
