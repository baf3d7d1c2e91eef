import { expect } from 'chai';
import { CouncilClient } from '../../src/client/client.js';
import type { DeliberationRecord } from '../../src/generated/schemas.js';
import { openChannel } from '../support/channel-client.js';
import type { DeliberatingService } from '../support/deliberating-server.js';
import { askedIn, dataOf, deliberatingService, lettersIn, saysTo, textOf } from '../support/deliberating-server.js';
import { refuses, says } from '../support/fake-openai.js';
import { hangs } from '../support/fake-server.js';
import { NO_RUN, isOver } from '../support/rest-client.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const edge = (source: string, target: string, condition?: string): object =>
  condition === undefined ? { source, target, type: 'linear' } : { source, target, type: 'conditional', condition };
const member = (name: string): object => ({ id: `${name}-id`, label: `The ${name}`, model: `openai/${name}` });
const modelIn = (given: object): string => ('model' in given ? String(given.model).replace('openai/', '') : '');
const FOUR = ['ash', 'elm', 'fir', 'yew'];
const PANEL = { id: 'panel', type: 'panel', members: FOUR.map(member) };
const WRITE = { id: 'write' };

describe('Panels, ranks, judges and juries', () => {
  let bench: DeliberatingService;

  afterEach(async () => {
    expect(bench.service.faults).to.deep.equal([]);
    await bench.stop();
  });

  async function deliberation(runId: string): Promise<DeliberationRecord> {
    const { rest, service } = bench;
    const found = rest.read(await rest.get(`/api/runs/${runId}/deliberation`), 200, 'deliberation.json');
    expect(await new CouncilClient({ url: service.url }).run(runId).deliberation()).to.deep.equal(found);
    return found;
  }

  /** Every prompt, `order_shown` and masked name follows from the record. */
  async function expectVerified(runId: string): Promise<void> {
    const { rest } = bench;
    const verified = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
    expect(verified).to.include({ valid: true, first_difference: null });
    for (const { step, attempt } of dataOf(await bench.events(runId), 'NodeStarted')) {
      const reply = await rest.get(`/api/runs/${runId}/prompt?step=${step}&attempt=${attempt}`);
      expect(rest.read(reply, 200, 'step-prompt.json'), `step ${step}`).to.include({ verified: true });
    }
    rest.read(await rest.get(`/api/runs/${runId}/genealogy`), 200, 'genealogy.json');
    expect((await rest.get(`/api/runs/${runId}/genealogy?format=mermaid`)).status).to.equal(200);
  }

  it('close a panel at its quorum: two answer at once, one fails, one hangs, one is too late', async () => {
    let answer: (() => void)[] = [];
    let late = (): void => undefined;
    bench = await deliberatingService((asked, { body }) => {
      if (asked !== 'draft') return null;
      if (body.model === 'hanging') return hangs;
      if (body.model === 'failing') return refuses(400, { message: 'No such thing.' });
      if (body.model === 'late') return (response) => (late = () => says('Too late')(response));
      if (!body.model.startsWith('fast')) return null;
      return (response) => {
        answer = [...answer, () => says(`Text of ${body.model}`)(response)];
        if (answer.length === 2) answer.forEach((each) => each());
      };
    });
    const members = ['fast-1', 'hanging', 'failing', 'fast-2', 'late'].map(member);
    const panel = { ...PANEL, members, quorum: 2, graceMs: 300 };
    const runId = await bench.start({ nodes: [panel, WRITE], edges: [edge('panel', 'write')] });
    const closed = (events: Awaited<ReturnType<DeliberatingService['events']>>) => dataOf(events, 'PanelClosed');
    await untilTrue(async () => closed(await bench.events(runId)).length > 0);
    late();
    const { current_draft: draft, ...run } = { ...(await bench.rest.until(runId, isOver)), current_draft: null };
    expect(run).to.include({ status: 'completed', final_draft: 'Text of plain', iteration_count: 2 });
    expect(draft).to.equal(null);
    const events = await bench.events(runId);
    expect(dataOf(events, 'QuorumReached')).to.have.lengthOf(1);
    expect(closed(events)).to.have.lengthOf(1);
    expect(dataOf(events, 'NodeCompleted').map((each) => each.member ?? each.node)).to.have.members([
      ...['fast-1-id', 'fast-2-id', 'write'],
    ]);
    const [failure] = dataOf(events, 'NodeFailed');
    expect(failure).to.include({ member: 'failing-id', final: true });
    const of = (name: string) => ({
      step: 1,
      node: 'panel',
      member: `${name}-id`,
      label: `The ${name}`,
      model: `openai/${name}`,
      text: null,
      error: null,
    });
    expect(await deliberation(runId)).to.deep.equal({
      answers: [
        { ...of('fast-1'), text: 'Text of fast-1', status: 'answered' },
        { ...of('hanging'), status: 'discarded' },
        { ...of('failing'), status: 'failed', error: failure?.message },
        { ...of('fast-2'), text: 'Text of fast-2', status: 'answered' },
        { ...of('late'), status: 'discarded' },
      ],
      rankings: [],
      results: [],
      analyses: [],
      juries: [],
    });
    const { usage } = bench.rest.read(await bench.rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    // The discarded calls and the failed one have no tokens.
    expect(usage).to.include({ calls: 6, repeated_calls: 0, unmetered_calls: 3, input_tokens: 33, output_tokens: 21 });
    await expectVerified(runId);
  });

  it('show the node and what is answered so far while a member is at work, which a cancel discards', async () => {
    bench = await deliberatingService((_, { body }) => (body.model === 'yew' ? hangs : null));
    const nodes = [{ id: 'begin' }, PANEL, { ...PANEL, id: 'later' }];
    const runId = await bench.start({ nodes, edges: [edge('begin', 'panel'), edge('panel', 'later')] });
    const { rest } = bench;
    await untilTrue(async () => dataOf(await bench.events(runId), 'NodeCompleted').length === 4);
    const events = await bench.events(runId);
    for (const { seq } of events) {
      const state = rest.read(await rest.get(`/api/runs/${runId}/state?at=${seq}`), 200, 'folded-run.json');
      const node = seq < 3 ? null : seq < 5 ? 'begin' : 'panel';
      expect(state, `after ${seq}`).to.include({ active_node: node, paused: false });
      rest.read(await rest.get(`/api/runs/${runId}/chart?at=${seq}`), 200, 'chart.json');
    }
    const state = rest.read(await rest.get(`/api/runs/${runId}/state`), 200, 'folded-run.json');
    expect(state).to.include({ status: 'running', current_draft: 'Text of plain', iteration_count: 1 });
    const { states } = rest.read(await rest.get(`/api/runs/${runId}/chart`), 200, 'chart.json');
    expect(states).to.have.nested.property('running.states.n1.tags').that.deep.equals(['active']);
    expect(await rest.poll(runId)).to.include({ status: 'running', iteration_count: 1, final_draft: null });
    const { usage } = rest.read(await rest.get(`/api/runs/${runId}`), 200, 'history-record.json');
    expect(usage).to.include({ calls: 5, unmetered_calls: 1 });
    expect((await deliberation(runId)).answers.map(({ member: id }) => id)).to.deep.equal([
      ...FOUR.slice(0, 3).map((name) => `${name}-id`),
    ]);
    const prompt = rest.read(await rest.get(`/api/runs/${runId}/prompt?step=5`), 200, 'step-prompt.json');
    expect(prompt).to.include({ node: 'panel', member: 'yew-id', role: 'panel', verified: true });
    await expectVerified(runId);
    rest.read(await rest.post(`/api/councils/run/${runId}/cancel`), 200, 'run-result.json');
    const { answers } = await deliberation(runId);
    expect(answers.map(({ member: id, status, text }) => [id, status, text])).to.deep.equal([
      ...FOUR.slice(0, 3).map((name) => [`${name}-id`, 'answered', `Text of ${name}`]),
      ['yew-id', 'discarded', null],
    ]);
    await expectVerified(runId);
  });

  it('fail a run below the quorum of its panel, and show what was answered', async () => {
    bench = await deliberatingService((_, { body }) =>
      ['ash', 'yew'].includes(body.model) ? refuses(400, { message: `No ${body.model}.` }) : null,
    );
    const nodes = [{ ...PANEL, quorum: 3 }, WRITE];
    const runId = await bench.start({ nodes, edges: [edge('panel', 'write')] });
    const { status, error } = await bench.rest.until(runId, isOver);
    expect(status).to.equal('failed');
    expect(error).to.include('ash-id').and.include('No ash.').and.include('yew-id').and.include('No yew.');
    const { answers } = await deliberation(runId);
    for (const name of ['ash', 'yew']) {
      expect(answers.find((each) => each.member === `${name}-id`)).to.include({ status: 'failed', text: null });
    }
    await expectVerified(runId);
  });

  it('show a deliberation in full: answers, rankings by members, analysis and jury', async () => {
    bench = await deliberatingService((asked, { body }) => {
      if (asked === 'score') return says(JSON.stringify({ score: body.model === 'ash' ? 6 : 9, feedback: body.model }));
      return null;
    });
    const nodes = [
      PANEL,
      { id: 'rank', type: 'rank', keep: 2 },
      { id: 'judge', type: 'judge', model: 'openai/oak' },
      WRITE,
      { id: 'jury', type: 'critic', members: FOUR.slice(0, 3).map(member), aggregate: 'lowest' },
    ];
    const order = nodes.map(({ id }) => id);
    const edges = order.slice(1).map((target, index) => edge(order[index] ?? '', target));
    const runId = await bench.start({ nodes, edges });
    expect(await bench.rest.until(runId, isOver)).to.include({ status: 'completed', critic_score: 6 });
    const { answers, rankings, results, analyses, juries } = await deliberation(runId);
    expect(answers.map(({ member: id, text, status }) => [id, text, status])).to.deep.equal(
      FOUR.map((name) => [`${name}-id`, `Text of ${name}`, 'answered']),
    );
    const started = dataOf(await bench.events(runId), 'NodeStarted');
    for (const { reviewer, model, order_shown: shown, ranking, comment } of rankings) {
      const start = started.find((each) => each.node === 'rank' && each.member === reviewer);
      expect(shown).to.deep.equal(start?.order_shown);
      expect(shown).to.have.members(FOUR.map((name) => `${name}-id`).filter((id) => id !== reviewer));
      expect(ranking).to.deep.equal([...shown].reverse());
      expect({ model, comment }).to.deep.equal({ model: start?.model, comment: 'The last is best' });
    }
    expect(rankings.map(({ reviewer }) => reviewer)).to.deep.equal(FOUR.map((name) => `${name}-id`));
    const [result] = results;
    expect(result?.points.map(({ rank }) => rank)).to.deep.equal([1, 2, 3, 4]);
    expect(result?.agreement).to.include({ reviewers: 4, reason: null });
    const [analysis] = analyses;
    expect(analysis).to.deep.include({ node: 'judge', model: 'openai/oak' });
    expect(analysis?.order_shown).to.have.members(result?.points.slice(0, 2).map((each) => each.member) ?? []);
    expect(analysis?.analysis.blind_spots).to.deep.equal(['Their roots']);
    expect(juries).to.deep.equal([
      {
        step: 11,
        node: 'jury',
        aggregate: 'lowest',
        score: 6,
        scores: ['ash', 'elm', 'fir'].map((name) => {
          return { member: `${name}-id`, model: `openai/${name}`, score: name === 'ash' ? 6 : 9, feedback: name };
        }),
        agreement: { alpha: null, spread: 3, members: 3, reason: 'one_round' },
      },
    ]);
    await expectVerified(runId);
  });

  it('show reviewers, the judge and the writer what the members said about vendors and things named like a member', async () => {
    const said: Readonly<Record<string, string>> = {
      'gpt-5': 'OpenAI charges 10 dollars, Anthropic 15. I say so as GPT users do.',
      command: 'A command economy pays more for solar power.',
      solar: 'Solar power is cheap; I am solar powered.\n\n## ash',
    };
    bench = await deliberatingService((asked, { body }) =>
      asked === 'draft' && body.model in said ? says(said[body.model] ?? '') : null,
    );
    const members = [{ ...member('gpt-5'), label: 'OpenAI' }, member('command'), member('solar')];
    const nodes = [
      { ...PANEL, members },
      { id: 'rank', type: 'rank', members: [member('ash')] },
      { id: 'judge', type: 'judge' },
      { id: 'critic', type: 'critic' },
      WRITE,
    ];
    const order = nodes.map(({ id }) => id);
    const edges = order.slice(1).map((target, index) => edge(order[index] ?? '', target));
    const topic = 'Which vendor should we buy from: OpenAI, Anthropic or Google?';
    const runId = await bench.start({ nodes, edges, topic });
    expect(await bench.rest.until(runId, isOver)).to.include({ status: 'completed' });
    const readers = bench.server.calls.slice(members.length);
    expect(readers.map(({ body }) => askedIn(body))).to.deep.equal(['ranking', 'analysis', 'score', 'draft']);
    for (const { body } of readers) {
      for (const text of [topic, ...Object.values(said)]) expect(textOf(body)).to.include(text);
    }
    await expectVerified(runId);
  });

  it('hide an answer that presents its own author from reviewers and the judge, and show it to later nodes', async () => {
    const answer = ({ model }: { readonly model: string }): string =>
      `## The ${model}\nAs ${model}, I say oaks. I am ${model}-id. I am known as The ${model}, by OpenAI.`;
    const hidden = '## [model]\nAs [model], I say oaks. I am [model]. I am known as [model], by OpenAI.';
    bench = await deliberatingService((asked, { body }) =>
      asked === 'draft' && body.model.startsWith('canary') ? says(answer(body)) : null,
    );
    const members = FOUR.map((name) => member(`canary-${name}`));
    const nodes = [
      { ...PANEL, members },
      { id: 'side', systemPrompt: 'Write beside the panel.' },
      { id: 'begin', systemPrompt: 'Begin.' },
      { id: 'rank', type: 'rank' },
      { id: 'judge', type: 'judge' },
      { id: 'critic', type: 'critic' },
      { id: 'merge', systemPrompt: 'Merge.' },
      { id: 'end', systemPrompt: 'End.' },
    ];
    const edges = [
      ...[edge('begin', 'panel'), edge('begin', 'side')],
      ...[edge('panel', 'rank'), edge('rank', 'judge'), edge('judge', 'critic'), edge('critic', 'merge')],
      ...[edge('side', 'merge'), edge('merge', 'end')],
    ];
    const runId = await bench.start({ nodes, edges });
    expect(await bench.rest.until(runId, isOver)).to.include({ status: 'completed' });
    const readers = bench.server.calls.filter(
      ({ body }) => askedIn(body) !== 'draft' || !body.model.startsWith('canary'),
    );
    expect(readers.map(({ body }) => askedIn(body))).to.have.members([
      ...['draft', 'draft', ...FOUR.map(() => 'ranking'), 'analysis', 'score', 'draft', 'draft'],
    ]);
    for (const { body } of readers) {
      const text = textOf(body);
      const asked = askedIn(body);
      const isReview = asked === 'ranking' || asked === 'analysis';
      const shown = lettersIn(body).length;
      expect(text.split(hidden).length - 1, asked).to.equal(isReview ? shown : 0);
      if (isReview) expect(text).to.not.include('canary');
      if (asked === 'score') for (const each of members) expect(text).to.include(answer({ model: modelIn(each) }));
      // The service itself names members by letters.
      if (text.includes('Merge.')) expect(text).to.include(`## Response A\n## The canary-`);
    }
    for (const { body } of bench.server.calls.filter((call) => !readers.includes(call))) {
      // Neither do the members know each other or their own label and id.
      for (const id of ['-id', 'The canary']) expect(textOf(body).includes(id)).to.equal(false);
    }
    const shown = bench.server.calls
      .filter(({ body }) => askedIn(body) === 'ranking')
      .map(({ body }) => lettersIn(body));
    expect(shown).to.deep.equal(FOUR.map(() => ['A', 'B', 'C']));
    const started = dataOf(await bench.events(runId), 'NodeStarted');
    expect(started.find(({ node }) => node === 'judge')?.masked).to.include.members(['canary-ash', 'the canary-yew']);
    expect(started.find(({ node }) => node === 'critic')).to.not.have.property('masked');
    await expectVerified(runId);
  });

  it('hide the labels of a jury from all nodes that read the answers, and show them once an agent has written', async () => {
    bench = await deliberatingService((asked) =>
      asked === 'score' ? says(JSON.stringify({ score: 9, feedback: 'Name acorns.' })) : null,
    );
    const nodes = [
      PANEL,
      { id: 'jury', type: 'critic', members: ['canary-oak', 'canary-lime'].map(member) },
      { id: 'rank', type: 'rank' },
      { id: 'judge', type: 'judge' },
      WRITE,
      { id: 'polish' },
    ];
    const order = nodes.map(({ id }) => id);
    const edges = order.slice(1).map((target, index) => edge(order[index] ?? '', target));
    const runId = await bench.start({ nodes, edges });
    expect(await bench.rest.until(runId, isOver)).to.include({ status: 'completed' });
    const readers = bench.server.calls.filter(({ body }) => ['ranking', 'analysis'].includes(askedIn(body)));
    expect(readers).to.have.lengthOf(5);
    for (const { body } of readers) {
      expect(textOf(body)).to.include('## A critic\nName acorns.').and.not.include('canary');
    }
    const [write = '', polish = ''] = bench.server.calls.slice(-2).map(({ body }) => textOf(body));
    expect(write).to.include('## A critic\nName acorns.').and.not.include('canary');
    expect(polish).to.include('## The canary-oak');
    await expectVerified(runId);
  });

  it('ask a reviewer and a judge again after an answer without the lists that it must have', async () => {
    const asked: Record<string, number> = {};
    bench = await deliberatingService((kind) => {
      if (kind !== 'ranking' && kind !== 'analysis') return null;
      asked[kind] = (asked[kind] ?? 0) + 1;
      if (asked[kind] > 1) return null;
      const lists = { contradictions: [{ topic: 'Age' }], partial_coverage: [], unique_insights: [], blind_spots: [] };
      return says(JSON.stringify(kind === 'ranking' ? { ranking: 'B > A' } : { consensus: 'All agree', ...lists }));
    });
    const members = FOUR.slice(0, 2).map(member);
    const nodes = [
      { ...PANEL, members },
      { id: 'rank', type: 'rank', members: [member('oak')] },
      { id: 'judge', type: 'judge' },
    ];
    const runId = await bench.start({ nodes, edges: [edge('panel', 'rank'), edge('rank', 'judge')] });
    expect(await bench.rest.until(runId, isOver)).to.include({ status: 'completed' });
    expect(asked).to.deep.equal({ ranking: 2, analysis: 2 });
    const again = bench.server.calls
      .map(({ body }) => textOf(body))
      .filter((text) => text.includes('could not be used'));
    expect(again).to.have.lengthOf(2);
    const { rankings, analyses } = await deliberation(runId);
    expect(rankings.map(({ comment }) => comment)).to.deep.equal(['The last is best']);
    expect(analyses.map(({ analysis }) => analysis.consensus)).to.deep.equal([['Oaks are trees']]);
    await expectVerified(runId);
  });

  it('announce a panel of four once, also when a member is asked again, and name members in the rich stream', async () => {
    let asked = 0;
    let begin = (): void => undefined;
    bench = await deliberatingService((_, call) => {
      const { model } = call.body;
      if (model === 'plain') return (response) => (begin = () => saysTo(call, 'Begun')(response));
      return model === 'elm' && (asked += 1) === 1 ? saysTo(call, '<think>Only thoughts') : null;
    });
    const nodes = [{ id: 'begin' }, { ...PANEL, maxAttempts: 3 }, { id: 'write', model: 'openai/oak' }];
    const runId = await bench.start({ nodes, edges: [edge('begin', 'panel'), edge('panel', 'write')] });
    const { url } = bench.service;
    const plain = openChannel(url, `/ws/council/${runId}`);
    const rich = openChannel(url, `/ws/council/${runId}?events=all`);
    await Promise.all([plain.until(({ event }) => event === 'node_active'), rich.until(({ seq }) => seq === 3)]);
    await bench.server.until(() => bench.server.calls.length > 0);
    begin();
    expect(await Promise.all([plain.closed, rich.closed])).to.deep.equal([1000, 1000]);
    const active = plain.messages.filter(({ event }) => event === 'node_active').map(({ node }) => node);
    expect(active).to.deep.equal(['begin', 'panel', 'write', 'done']);
    expect(asked).to.equal(2);
    const of = (wanted: string): readonly unknown[] =>
      rich.messages.filter(({ event }) => event === wanted).map(({ node, member: id }) => id ?? node);
    const ids = FOUR.map((name) => `${name}-id`);
    expect(of('node_start')).to.deep.equal(['begin', ...ids, 'elm-id', 'write']);
    expect(of('node_complete')).to.have.members(['begin', ...ids, 'write']);
    expect(new Set(of('token'))).to.include.all.keys('elm-id', 'write');
  });

  it('pause once before each of these nodes in God Mode', async () => {
    bench = await deliberatingService();
    const nodes = [
      PANEL,
      { id: 'rank', type: 'rank' },
      { id: 'judge', type: 'judge' },
      { id: 'jury', type: 'critic', members: FOUR.slice(0, 2).map(member) },
    ];
    const edges = [edge('panel', 'rank'), edge('rank', 'judge'), edge('judge', 'jury')];
    const runId = await bench.start({ nodes, edges }, true);
    const run = new CouncilClient({ url: bench.service.url }).run(runId);
    for (const { id } of nodes) {
      await untilTrue(async () => (await run.pause())?.state.next_nodes?.includes(id) === true);
      const pause = await run.pause();
      expect(pause?.state.next_nodes).to.deep.equal([id]);
      expect(pause?.state.current_state.active_node).to.equal(id);
      expect(pause?.state.branches).to.equal(undefined);
      await pause?.approve();
    }
    await bench.rest.until(runId, isOver);
    expect(dataOf(await bench.events(runId), 'RunPaused').map(({ nextNodes }) => nextNodes)).to.deep.equal(
      nodes.map(({ id }) => [id]),
    );
    await expectVerified(runId);
  });

  it('keep what was recorded before a fork, which its deliberation shows', async () => {
    bench = await deliberatingService();
    const nodes = [PANEL, { id: 'rank', type: 'rank', keep: 3 }, { id: 'judge', type: 'judge' }, WRITE];
    const edges = [edge('panel', 'rank'), edge('rank', 'judge'), edge('judge', 'write')];
    const runId = await bench.start({ nodes, edges });
    await bench.rest.until(runId, isOver);
    const events = await bench.events(runId);
    const whole = await deliberation(runId);
    // Without a soak at every fifth event.
    for (const { seq, type } of events.slice(0, -1).filter((_, at) => IS_SOAK || at % 5 === 4)) {
      const asked = bench.server.calls.length;
      const reply = await bench.rest.post(`/api/runs/${runId}/fork`, { at: seq });
      const fork = bench.rest.read(reply, 202, 'run-start.json').run_id;
      expect(await bench.rest.until(fork, isOver), `${seq} ${type}`).to.include({ status: 'completed' });
      const done = events.slice(0, seq + 1).filter((event) => event.type === 'NodeCompleted').length;
      expect(bench.server.calls.length - asked, `calls of a fork at ${seq}`).to.equal(10 - done);
      const { answers, rankings, results, analyses } = await deliberation(fork);
      expect(answers, `answers of a fork at ${seq}`).to.deep.equal(whole.answers);
      expect(rankings.map(({ reviewer }) => reviewer)).to.deep.equal(FOUR.map((name) => `${name}-id`));
      const isRanked = seq >= (events.filter((event) => event.type === 'PanelClosed')[1]?.seq ?? 0);
      if (isRanked) expect({ rankings, results }).to.deep.equal({ rankings: whole.rankings, results: whole.results });
      if (done === 9) expect(analyses, `analyses of a fork at ${seq}`).to.deep.equal(whole.analyses);
      expect(analyses).to.have.length(1);
      await expectVerified(fork);
    }
    const grandchild = bench.rest.read(
      await bench.rest.post(`/api/runs/${runId}/fork`, { at: events.length - 2 }),
      202,
      'run-start.json',
    ).run_id;
    await bench.rest.until(grandchild, isOver);
    const again = await bench.rest.post(`/api/runs/${grandchild}/fork`, { at: 1 });
    const fork = bench.rest.read(again, 202, 'run-start.json').run_id;
    await bench.rest.until(fork, isOver);
    expect(await deliberation(fork), 'of a fork of a fork').to.deep.equal(whole);
  });

  it('have no deliberation for an unknown run, and an empty one without these nodes', async () => {
    bench = await deliberatingService();
    expect(bench.rest.problem(await bench.rest.get(`/api/runs/${NO_RUN}/deliberation`), 404).detail).to.include(NO_RUN);
    const runId = await bench.start({ nodes: [WRITE], edges: [] });
    await bench.rest.until(runId, isOver);
    const none = { answers: [], rankings: [], results: [], analyses: [], juries: [] };
    expect(await deliberation(runId)).to.deep.equal(none);
  });
});
