import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { BlueprintCreate, RunResult } from '../../src/generated/schemas.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { sharedService } from '../support/shared-service.js';

const EXAMPLE = new URL('../../../schemas/examples/escalate.blueprint.json', import.meta.url);

/** Jurors with these scores, and reviewers who order the answers alike or each in another way. */
function minds(scores: readonly number[], doAgree: boolean): ScriptedModel {
  const council = councilScript(scores);
  let reviewed = 0;
  return scriptedModel((request, index) => {
    const { answer, promptInput } = request;
    if (answer !== 'ranking') return council(request, index);
    const { answers = [] } = promptInput;
    const letters = [...answers].sort((a, b) => a.text.localeCompare(b.text)).map(({ letter }) => letter);
    const from = doAgree ? 0 : reviewed;
    reviewed += 1;
    return { text: JSON.stringify({ ranking: [...letters.slice(from), ...letters.slice(0, from)], comment: '' }) };
  });
}

describe('The council that escalates', () => {
  const house = sharedService();
  let runs = 0;

  /** A run of the example, whose pauses approve themselves at once, until it has ended or waits for a human. */
  async function run(model: ScriptedModel): Promise<{ readonly result: RunResult; readonly asked: readonly string[] }> {
    const rest = restClient((await house.serve(model)).url);
    const council = JSON.parse(readFileSync(EXAMPLE, 'utf8')) as BlueprintCreate;
    const approvals = { deadline: { after_ms: 1, then: 'approve' } } as const;
    const id = `escalate-${(runs += 1)}`;
    const saved = await rest.post('/api/councils/', { ...council, id, approvals });
    expect(rest.read(saved, 201, 'blueprint.json').warnings.map(({ path }) => path)).to.deep.equal(['approvals']);
    const begun = await rest.post(`/api/councils/${id}/run`, { input_topic: 'Trees', god_mode: true });
    const { run_id: runId } = rest.read(begun, 202, 'run-start.json');
    const isWaiting = ({ next_nodes: next }: RunResult): boolean => next?.[0] === 'moderator';
    const result = await rest.until(runId, (now) => isOver(now) || isWaiting(now));
    return { result, asked: [...new Set(model.requests.map(({ promptInput }) => promptInput.label))] };
  }

  it('asks no panel if its critics are content', async () => {
    const { result, asked } = await run(minds([9, 8], true));
    expect(result.status).to.equal('completed');
    expect(asked).to.deep.equal(['Writer', 'Critic', 'Editor']);
  });

  it('asks the panel if its critics are far apart, and no human if the reviewers agree', async () => {
    const { result, asked } = await run(minds([10, 6], true));
    expect(result.status).to.equal('completed');
    expect(asked).to.deep.equal(['Writer', 'Critic', 'Panel', 'Ranking', 'Editor']);
  });

  it('waits for a human only before the moderator, if the reviewers disagree', async () => {
    const { result, asked } = await run(minds([5, 6], false));
    expect(result).to.deep.include({ status: 'paused', next_nodes: ['moderator'] });
    expect(asked).to.deep.equal(['Writer', 'Critic', 'Panel', 'Ranking']);
  });
});
