import { expect } from 'chai';
import {
  CouncilClient,
  InvalidError,
  NotFoundError,
  PreconditionFailedError,
  StalePauseError,
} from '../../src/client/client.js';
import type { SeenPause } from '../../src/client/client.js';
import type { BlueprintCreate } from '../../src/generated/schemas.js';
import { present } from '../../src/system/element.js';
import { spoiltService } from '../cli/spoilt-service.js';
import { allOf } from '../support/all-of.js';
import { systemWithoutBackoff } from '../support/client-system.js';
import type { FakeServer, Reply } from '../support/fake-server.js';
import { answersStatus, endsMidBody, fakeServer, resets, sends } from '../support/fake-server.js';
import { instantModel } from '../support/instant-model.js';
import { rejectionOf } from '../support/rejection.js';
import { NO_RUN } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { pdfWith } from '../support/upload-client.js';

const PAIR: BlueprintCreate = {
  name: 'Pair',
  nodes: [{ id: 'write' }, { id: 'polish' }],
  edges: [{ source: 'write', target: 'polish' }],
};

describe('The client', () => {
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService({ model: instantModel() });
    council = new CouncilClient({ url: `${service.url}/`, system: systemWithoutBackoff() });
  });
  after(() => service.stop());

  const paused = async (): Promise<SeenPause> => {
    const blueprint = await council.blueprints.create(PAIR);
    const run = await council.runs.start({ topic: 'Trees', blueprint, godMode: true });
    return present(await run.pause(), 'pause');
  };

  it('starts a run, waits for its result and reads its history', async () => {
    const run = await council.runs.start({ topic: 'Trees' });
    const result = await run.result();
    expect(result).to.include({ run_id: run.id, status: 'completed' });
    expect({ ...(await run.status()), output: null }).to.deep.equal(result);
    expect(await run.material()).to.equal('');
    expect(await council.runs.get(run.id)).to.deep.include({ id: run.id, final_draft: result.final_draft });
    expect(await run.state({ at: 0 })).to.deep.include({ seq: 0, final_draft: null });
    expect(await run.verify()).to.include({ valid: true });
    expect(await run.pause()).to.equal(null);
    const exported = await allOf(run.export());
    expect(Buffer.concat(exported).toString().trimEnd().split('\n')).to.have.lengthOf((await run.verify()).events);
  });

  it('starts a run with material, documents and an output schema, also as a trial and a fork', async () => {
    const outputSchema = { type: 'object', properties: { draft: { type: 'string' } }, required: ['draft'] };
    const material = '\uFEFFClause 1: naïve';
    const run = await council.runs.start<{ readonly draft: string }>({ topic: 'Trees', material, outputSchema });
    const result = await run.result();
    if (result.status !== 'completed') throw new Error(result.error ?? result.status);
    const { draft }: { readonly draft: string } = result.output;
    expect(draft).to.equal(result.final_draft);
    expect(await run.material()).to.equal(material);
    const fork = await run.fork({ at: 2, changes: { material: '' } });
    expect((await fork.result()).output?.draft).to.be.a('string');
    expect(await fork.material()).to.equal('');
    const blueprint = { ...PAIR, output_schema: outputSchema };
    const trial = await council.runs.tryBlueprint<{ readonly draft: string }>({ topic: 'Trees', material, blueprint });
    expect((await trial.result()).output?.draft).to.be.a('string');
    expect(await council.blueprints.create(blueprint)).to.deep.include({ output_schema: outputSchema });
    const documents = ['gone'];
    for (const refused of [
      council.runs.start({ topic: 'Trees', documents }),
      council.runs.tryBlueprint({ topic: 'Trees', blueprint: { ...PAIR, documents } }),
      council.blueprints.create({ ...PAIR, documents }),
    ])
      expect(await rejectionOf(refused)).to.be.instanceOf(InvalidError);
  });

  it('returns the chart of a run after an event, the chart of a blueprint, and the genealogy of a draft', async () => {
    const blueprint = await council.blueprints.create(PAIR);
    const run = await council.runs.start({ topic: 'Trees', blueprint });
    await run.result();
    const { seq } = await run.state();
    expect(await run.chart())
      .to.have.property('meta')
      .that.includes({ run_id: run.id, seq, value: 'completed' });
    expect(await run.chart({ at: 0 }))
      .to.have.property('meta')
      .that.includes({ seq: 0, value: 'pending' });
    const { states } = await council.blueprints.chart(blueprint.id);
    expect(states).to.have.nested.property('running.states').that.has.all.keys('idle', 'n0', 'n1');
    expect((await run.genealogy()).drafts.map(({ node }) => node)).to.deep.equal(['write', 'polish']);
  });

  it('starts a run with a budget, and approves its pause with a larger one', async () => {
    const run = await council.runs.start({ topic: 'Trees', budget: { tokens: 100 } });
    const pause = present(await run.pause(), 'pause');
    expect((await rejectionOf(pause.approve())) instanceof InvalidError).to.equal(true);
    await pause.approve({ budget: { tokens: 100_000 } });
    expect((await run.result()).budget).to.include({ tokens: 100_000, on_exceeded: 'pause' });
  });

  it('decides a pause with a comment, and continues with the changed state', async () => {
    const pause = await paused();
    expect(pause.nextNodes).to.deep.equal(['write']);
    const run = council.run(pause.runId);
    expect(await run.pauseAt(pause.seq).approve({ comment: 'Go' })).to.include({ status: 'running' });
    for await (const { type, seq } of run.events()) if (type === 'RunPaused' && seq > pause.seq) break;
    const second = present(await run.pause(), 'pause');
    expect(second.nextNodes).to.deep.equal(['polish']);
    expect(second.state.current_state.current_draft).to.equal('Draft 1');
    await second.modify({ current_draft: 'Draft 41' });
    expect(await run.result()).to.include({ final_draft: 'Draft 42' });
  });

  it('rejects a pause', async () => {
    const pause = await paused();
    expect(await pause.reject()).to.include({ status: 'failed' });
  });

  it('throws StalePauseError if the run waits at another pause (409) or at none (400)', async () => {
    const pause = await paused();
    const run = council.run(pause.runId);
    await pause.approve();
    for await (const { type, seq } of run.events()) if (type === 'RunPaused' && seq > pause.seq) break;
    expect(await rejectionOf(pause.reject()))
      .to.be.instanceOf(StalePauseError)
      .and.include({ status: 409 });
    const second = present(await run.pause(), 'pause');
    await run.cancel();
    expect(await rejectionOf(second.approve()))
      .to.be.instanceOf(StalePauseError)
      .and.include({ status: 400 });
  });

  it('applies a decision once when it is sent repeatedly', async () => {
    const pause = await paused();
    const answers = await Promise.all([pause.approve(), pause.approve(), pause.approve()]);
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set(['running']));
    await council.run(pause.runId).cancel();
  });

  it('reports the reason of a refused change, and leaves the pause open', async () => {
    const pause = await paused();
    const error = await rejectionOf(pause.modify({ critic_score: 11 }));
    expect(error).to.include({ name: 'InvalidError', status: 422 }).and.have.nested.property('errors[0].loc');
    expect(await pause.approve()).to.include({ status: 'running' });
  });

  it('distinguishes a run without God Mode, which never pauses, from an unknown run', async () => {
    const run = await council.runs.start({ topic: 'Trees' });
    expect(await run.pause()).to.equal(null);
    expect(await rejectionOf(council.run(NO_RUN).pause())).to.be.instanceOf(NotFoundError);
    expect(() => council.run('..').events()).to.throw(TypeError);
  });

  it('previews a fork, and forks a run', async () => {
    const run = await council.runs.start({ topic: 'Trees' });
    await run.result();
    const plan = await run.fork({ at: 6, changes: { input_topic: 'Bushes' } }, { dryRun: true });
    expect(plan.new_calls_at_least).to.be.greaterThan(0);
    const fork = await run.fork({ at: 6, changes: { input_topic: 'Bushes' }, budget: { tokens: 90_000 } });
    expect(fork.id).not.to.equal(run.id);
    const ended = await fork.result();
    expect(ended).to.include({ status: 'completed' });
    expect(ended.budget).to.include({ tokens: 90_000 });
    expect(await council.runs.get(fork.id)).to.include({ input_topic: 'Bushes' });
  });

  it('lists runs over all pages', async () => {
    const ids: string[] = [];
    for (let runs = 0; runs < 5; runs += 1) ids.unshift((await council.runs.start({ topic: `Topic ${runs}` })).id);
    const listed: string[] = [];
    for await (const { id } of council.runs.list({ limit: 2 })) if (listed.push(id) === 5) break;
    expect(listed.toSorted()).to.deep.equal(ids.toSorted());
    const pages: number[] = [];
    for await (const page of council.runs.list({ limit: 2 }).pages()) if (pages.push(page.length) === 2) break;
    expect(pages).to.deep.equal([2, 2]);
  });

  it('finds and counts runs by their properties', async () => {
    const pause = await paused();
    await (await council.runs.start({ topic: 'Lighthouses' })).result();
    const found = await allOf(council.runs.list({ q: 'lighthouses', minScore: 8, status: 'completed', sort: 'score' }));
    expect(found.map(({ input_topic: topic }) => topic)).to.deep.equal(['Lighthouses']);
    const [waiting] = await allOf(council.runs.list({ status: 'paused', sort: 'waiting', limit: 1 }));
    expect(await council.runs.count({ status: 'paused', blueprint: waiting?.blueprint_id ?? '' })).to.equal(1);
    const yesterday = new Date(Date.now() - 86_400_000);
    expect(await council.runs.count({ to: yesterday })).to.equal(0);
    expect(await council.runs.count({ from: yesterday })).to.be.greaterThan(1);
    await council.run(pause.runId).cancel();
  });

  it('changes a blueprint unless another client has changed it', async () => {
    const { blueprints } = council;
    const first = await blueprints.create(PAIR);
    const second = await blueprints.update(first.id, { name: 'Two' }, { ifMatch: first.etag });
    expect(second).to.include({ name: 'Two', version: 2 });
    expect(await blueprints.get(first.id)).to.deep.equal(second);
    const late = blueprints.update(first.id, { name: 'Three' }, { ifMatch: first.etag });
    expect(await rejectionOf(late)).to.be.instanceOf(PreconditionFailedError);
    expect((await allOf(blueprints.list())).map(({ id }) => id)).to.include(first.id);
    expect(await blueprints.validate({ name: 'None', nodes: [] })).to.include({ valid: false });
    await blueprints.delete(first.id);
    expect(await rejectionOf(blueprints.get(first.id))).to.be.instanceOf(NotFoundError);
  });

  it('uploads, lists and deletes documents', async () => {
    const { documents } = council;
    const pdf = new Blob([new Uint8Array(pdfWith(['Trees grow']))]);
    expect(await documents.upload(pdf, { filename: 'trees.pdf' })).to.include({ filename: 'trees.pdf' });
    expect(await documents.upload(new File([pdf], 'same.pdf'))).to.include({ filename: 'same.pdf' });
    const [document] = await allOf(documents.list());
    const { id } = present(document, 'document');
    expect(await documents.get(id)).to.deep.equal(document);
    await documents.delete(id);
    expect(await allOf(documents.list())).to.deep.equal([]);
  });

  it('reports whether the service answers and is ready', async () => {
    expect(await council.health()).to.include({ status: 'ok' });
    expect(await council.ready()).to.include({ status: 'ready' });
  });

  it('starts one run when the answers to the start are lost', async () => {
    let lost = 0;
    const spoilt = await spoiltService(service.url, ({ method }) => {
      if (method !== 'POST' || lost === 3) return 'pass';
      lost += 1;
      return 'lose';
    });
    const before = await allOf(council.runs.list());
    const run = await new CouncilClient({ url: spoilt.url, system: systemWithoutBackoff() }).runs.start({
      topic: 'Seas',
    });
    await spoilt.stop();
    const after = await allOf(council.runs.list());
    expect(after).to.have.lengthOf(before.length + 1);
    expect(after.map(({ id }) => id)).to.include(run.id);
    expect(lost).to.equal(3);
  });

  it('cancels a run once, also when the answer is lost, and refuses one that has ended', async () => {
    const pause = await paused();
    let isLost = false;
    const spoilt = await spoiltService(service.url, ({ method }) => {
      if (method !== 'POST' || isLost) return 'pass';
      isLost = true;
      return 'lose';
    });
    const client = new CouncilClient({ url: spoilt.url, system: systemWithoutBackoff() });
    expect(await client.run(pause.runId).cancel()).to.include({ status: 'failed', error: 'Cancelled by the user' });
    await spoilt.stop();
    const run = await council.runs.start({ topic: 'Trees' });
    await run.result();
    expect(await rejectionOf(run.cancel())).to.include({ name: 'ConflictError', status: 409 });
  });
});

describe('A call of the client', () => {
  let server: FakeServer<unknown>;
  const client = async (replies: readonly Reply[], key?: string): Promise<CouncilClient> => {
    server = await fakeServer(replies);
    return new CouncilClient({ url: server.url, key, system: systemWithoutBackoff() });
  };
  afterEach(() => server.stop());

  it('sends the key, and the same idempotency key in all attempts', async () => {
    const council = await client([resets, answersStatus(503), sends({ run_id: NO_RUN })], 'secret');
    await council.runs.start({ topic: 'Trees' });
    await council.runs.start({ topic: 'Trees', idempotencyKey: 'mine' });
    const sent = server.calls.map(({ headers }) => [headers.authorization, headers['idempotency-key']]);
    const [[bearer, first], second, third, fourth] = sent as [string[], string[], string[], string[]];
    expect(bearer).to.equal('Bearer secret');
    expect(first).to.match(/^[0-9a-f]{32}$/);
    expect([second[1], third[1], fourth[1]]).to.deep.equal([first, first, 'mine']);
  });

  it('is repeated when its answer is incomplete', async () => {
    const council = await client([sends(''), sends('{"run_id":'), sends({ run_id: NO_RUN })]);
    expect((await council.runs.start({ topic: 'Trees' })).id).to.equal(NO_RUN);
  });

  it('that is not idempotent is repeated only after 429', async () => {
    const run = (await client([answersStatus(429), answersStatus(503)])).run(NO_RUN);
    expect(await rejectionOf(run.fork({ at: 1 }))).to.include({ name: 'UnavailableError', status: 503 });
    expect(server.calls).to.have.lengthOf(2);
    server.answerBy([endsMidBody]);
    expect(await rejectionOf(run.fork({ at: 1 }))).to.include({ name: 'UnreachableError', status: null });
    expect(server.calls).to.have.lengthOf(3);
  });

  it('throws an error with the status, detail, errors and Retry-After of the answer', async () => {
    const body = { detail: 'Slow down', errors: [{ loc: ['query'], msg: 'No', type: 'x' }] };
    const refuses: Reply = (response) =>
      response.writeHead(400, { 'Retry-After': '3', 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    const council = await client([refuses]);
    const expected = { name: 'BadRequestError', status: 400, detail: 'Slow down', errors: body.errors, retryAfter: 3 };
    expect(await rejectionOf(council.run(NO_RUN).status())).to.deep.include(expected);
  });

  it('throws an error that names the request if the answer has no detail', async () => {
    const council = await client([answersStatus(404, '<html>')]);
    const path = `/api/councils/run/${NO_RUN}`;
    expect(await rejectionOf(council.run(NO_RUN).status())).to.include({
      message: `GET ${server.url}${path} answers 404`,
      status: 404,
    });
    server.answerBy([(response) => response.writeHead(301, { Location: '/elsewhere' }).end()]);
    expect(await rejectionOf(council.health())).to.include({ status: 301 });
    server.answerBy([sends('<html>')]);
    expect(await rejectionOf(council.health())).to.have.property('name', 'UnexpectedAnswerError');
  });

  it('rejects with the reason of its signal, also while it waits', async () => {
    const council = await client([(response) => response.writeHead(503, { 'Retry-After': '20' }).end()]);
    const abort = new AbortController();
    const reason = new Error('Enough');
    const asked = council.run(NO_RUN).status({ signal: abort.signal });
    await server.until(() => server.calls.length === 1);
    setImmediate(() => abort.abort(reason));
    expect(await rejectionOf(asked)).to.equal(reason);
    expect(await rejectionOf(council.health({ signal: abort.signal }))).to.equal(reason);
    expect(server.calls).to.have.lengthOf(1);
  });

  it('needs a valid address and key', async () => {
    await client([resets]);
    for (const url of ['', 'localhost:8000', 'ftp://localhost', 'http://ann:secret@localhost']) {
      expect(() => new CouncilClient({ url }), url).to.throw(TypeError);
    }
    expect(() => new CouncilClient({ url: server.url, key: 'two\nlines' })).to.throw(TypeError);
    expect(new CouncilClient({ url: 'https://example.org/council/' })).to.be.instanceOf(CouncilClient);
  });
});
