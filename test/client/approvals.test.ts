import { expect } from 'chai';
import type { ApprovalChange } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { systemWithoutBackoff } from '../support/client-system.js';
import type { Reply } from '../support/fake-server.js';
import { fakeServer, resets } from '../support/fake-server.js';
import { instantModel } from '../support/instant-model.js';
import { rejectionOf } from '../support/rejection.js';
import { NO_RUN } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe("The client's inbox", () => {
  let service: RunningService;
  let council: CouncilClient;
  let blueprint: string;

  before(async () => {
    service = await startService({ model: instantModel() });
    council = new CouncilClient({ url: service.url, system: systemWithoutBackoff() });
    ({ id: blueprint } = await council.blueprints.create({ name: 'One', nodes: [{ id: 'write' }] }));
  });
  after(() => service.stop());

  const started = async (topic: string) => await council.runs.start({ topic, blueprint, godMode: true });
  const next = async (changes: AsyncIterator<ApprovalChange>): Promise<ApprovalChange> => {
    const result: IteratorResult<ApprovalChange, unknown> = await changes.next();
    if (result.done === true) throw new Error('It is over');
    return result.value;
  };

  it('lists the pauses, and decides only the chosen pause', async () => {
    const run = await started('Trees');
    const [approval] = await council.approvals.list({ mine: true, blueprint, since: new Date(0), limit: 10 });
    expect(approval).to.include({ run_id: run.id, input_topic: 'Trees', may_decide: true });
    const pause = run.pauseAt(approval?.expected_seq ?? -1);
    expect(await pause.reject({ comment: 'No' })).to.include({ status: 'failed' });
    expect(await rejectionOf(run.pauseAt(0).approve())).to.have.property('name', 'StalePauseError');
    expect(await council.approvals.list()).to.deep.equal([]);
  });

  it('yields waiting and ended pauses, and continues after its cursor', async () => {
    const first = await started('One');
    const watching = council.approvals.watch({ blueprint });
    const changes = watching[Symbol.asyncIterator]();
    expect(await next(changes)).to.include({ type: 'waiting', run_id: first.id, input_topic: 'One' });
    const second = await started('Two');
    expect(await next(changes)).to.include({ type: 'waiting', run_id: second.id, input_topic: 'Two' });
    await changes.return?.();
    await first.cancel();
    const later = council.approvals.watch({ from: watching.cursor })[Symbol.asyncIterator]();
    expect(await next(later)).to.include({ type: 'gone', run_id: first.id, outcome: 'failed' });
    await second
      .pauseAt((await second.state()).seq)
      .reject()
      .catch(() => undefined);
    await second.cancel().catch(() => undefined);
    expect(await next(later)).to.include({ type: 'gone', run_id: second.id });
    await later.return?.();
  });

  it('asks for the pauses of the key, skips unknown changes, and rejects a malformed pause', async () => {
    const eventStream =
      (text: string): Reply =>
      (response) =>
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(text);
    const data = JSON.stringify({ run_id: NO_RUN, expected_seq: 3 });
    const server = await fakeServer([
      eventStream(`id: 1\nevent: moved\ndata: {}\n\nid: 2\nevent: gone\ndata: ${data}\n\n`),
      resets,
      eventStream('event: waiting\ndata: []\n\n'),
    ]);
    const changes = new CouncilClient({ url: server.url, system: systemWithoutBackoff() }).approvals
      .watch({ mine: true })
      [Symbol.asyncIterator]();
    expect(await next(changes)).to.deep.equal({ type: 'gone', run_id: NO_RUN, expected_seq: 3 });
    expect(await rejectionOf(next(changes))).to.have.property('name', 'UnexpectedAnswerError');
    expect(server.calls[0]).to.include({ path: '/api/approvals/stream?mine=1' });
    expect(server.calls[1]?.headers['last-event-id']).to.equal('2');
    await server.stop();
  });
});
