import { expect } from 'chai';
import { graphOf } from '../support/given.js';
import { openChannel } from '../support/channel-client.js';
import { approvePath, pausedBefore, startGodRun } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

const council = graphOf(`
  write -> judge?
  judge? -rework-> write
  judge? -approve-> polish
`);

describe('The channel of a run in God Mode', () => {
  let service: RunningService;
  let rest: RestClient;
  let runId: string;

  beforeEach(async () => {
    service = await startService({ model: scriptedModel(councilScript([5])) });
    rest = restClient(service.url);
    runId = await startGodRun(service.context, council);
  });
  afterEach(() => service.stop());

  const channel = () => openChannel(service.url, `/ws/council/${runId}`);
  const decide = async (action: string, modifiedState: object | null = null): Promise<void> => {
    const reply = await rest.post(approvePath(runId), { action, modified_state: modifiedState });
    rest.read(reply, 200, 'run-result.json');
  };
  const active = (node: string, iteration: number | null) => ({ event: 'node_active', run_id: runId, node, iteration });
  const paused = (node: string, draft: string | null, score: number | null, iteration: number | null) => ({
    event: 'run_paused',
    run_id: runId,
    next_nodes: [node],
    current_draft: draft,
    critic_score: score,
    iteration_count: iteration,
  });
  const resumed = (action: string) => ({ event: 'run_resumed', run_id: runId, action });

  it('sends each pause and each decision in order, to the end', async () => {
    const client = channel();
    const pauses = () => client.messages.filter(({ event }) => event === 'run_paused').length;
    for (const [index, [action, override]] of (
      [
        ['approve', null],
        ['approve', null],
        ['modify', { critic_score: 8 }],
      ] as const
    ).entries()) {
      await client.until(() => pauses() > index);
      await decide(action, override);
    }
    expect(await client.closed).to.equal(1000);
    expect(client.messages).to.deep.equal([
      { event: 'connected', run_id: runId, status: 'paused' },
      active('write', null),
      paused('write', null, null, null),
      resumed('approve'),
      active('judge', 1),
      paused('judge', 'Draft 1 by Write', null, 1),
      resumed('approve'),
      active('write', 1),
      paused('write', 'Draft 1 by Write', 5, 1),
      resumed('modify'),
      active('polish', 1),
      active('done', 2),
      {
        event: 'run_complete',
        run_id: runId,
        final_draft: 'Draft 2 by Polish',
        critic_score: 8,
        iteration_count: 2,
      },
    ]);
  });

  it('sends a late joiner the pause', async () => {
    await decide('approve');
    await pausedBefore(service.context, runId, 'judge');
    const late = channel();
    await late.until(({ event }) => event === 'run_paused');
    expect(late.messages).to.deep.equal([
      { event: 'connected', run_id: runId, status: 'paused' },
      active('judge', 1),
      paused('judge', 'Draft 1 by Write', null, 1),
    ]);
  });

  it('reports a rejection as a failure', async () => {
    const client = channel();
    await client.until(({ event }) => event === 'run_paused');
    await decide('reject');
    expect(await client.closed).to.equal(1000);
    const error = 'Rejected by the user in God Mode';
    expect(client.messages.slice(3)).to.deep.equal([{ event: 'run_failed', run_id: runId, error }]);
  });

  it('reports the cancellation of a paused run, which then refuses approvals', async () => {
    const client = channel();
    await client.until(({ event }) => event === 'run_paused');
    rest.read(await rest.post(`/api/councils/run/${runId}/cancel`), 200, 'run-result.json');
    expect(await client.closed).to.equal(1000);
    expect(client.messages.at(-1)).to.deep.equal({
      event: 'run_failed',
      run_id: runId,
      error: 'Cancelled by the user',
    });
    rest.problem(await rest.post(approvePath(runId), { action: 'approve' }), 400);
  });
});
