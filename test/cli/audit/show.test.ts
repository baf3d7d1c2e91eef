import { expect } from 'chai';
import { eventLine } from '../../../src/cli/terminal/event-line.js';
import { deliberationText } from '../../../src/cli/terminal/deliberation-text.js';
import type { RunEvent } from '../../../src/run/events.js';
import type { DeliberationRecord } from '../../../src/generated/schemas.js';
import { councilBench } from '../../support/council-command.js';
import { councilService } from '../../support/council-service.js';
import { isOver } from '../../support/rest-client.js';

const plain = (_: string, text: string): string => text;
const MODEL = 'openai/oak';

describe('council show', () => {
  const council = councilService();

  it('shows the deliberation of a run, the same at a service and in the folder of the stopped one', async () => {
    const { bench, rest, service } = council;
    const members = ['ash', 'elm', 'fir'].map((id) => ({ id, label: `The ${id}` }));
    const nodes = [
      { id: 'panel', type: 'panel', members },
      { id: 'rank', type: 'rank' },
      { id: 'judge', type: 'judge' },
      { id: 'jury', type: 'critic', members },
    ];
    const edges = [
      { source: 'panel', target: 'rank' },
      { source: 'rank', target: 'judge' },
      { source: 'judge', target: 'jury' },
    ];
    rest.read(await rest.post('/api/councils/', { id: 'oaks', name: 'Oaks', nodes, edges }), 201, 'blueprint.json');
    const started = await rest.post('/api/councils/oaks/run', { input_topic: 'Oaks' });
    const { run_id: runId } = rest.read(started, 202, 'run-start.json');
    await rest.until(runId, isOver);
    const record = (await rest.get(`/api/runs/${runId}/deliberation`)).text;
    const shown = await council.ask('show', runId);
    const json = await council.ask('show', runId, '--json');
    expect(JSON.parse(json.stdout)).to.deep.equal(JSON.parse(record));
    expect(shown.stderr).to.equal('');
    const { stdout } = shown;
    expect(stdout)
      .to.match(/^Answers of panel panel$/m)
      .and.match(/^ {2}The ash {2}answered {2}offline/m);
    expect(stdout)
      .to.match(/^ {2}rank {2}answer {3}points$/m)
      .and.match(/^ {2}Agreement: .* among 3 reviewers/m);
    expect(stdout)
      .to.match(/^Analysis by judge judge$/m)
      .and.match(/^Scores of jury jury$/m);
    expect(stdout).not.to.match(/confidence|certainty/i);
    await service.stop();
    const inFolder = { DATA_DIR: service.dataDir };
    for (const [words, expected] of [
      [['show', runId], stdout],
      [['show', runId, '--json'], json.stdout],
    ] as const) {
      expect(await bench.council(words, { env: inFolder })).to.include({ code: 0, stdout: expected, stderr: '' });
    }
  });

  it('says what agreement means, and why it is not defined', () => {
    const none: DeliberationRecord = { answers: [], rankings: [], results: [], analyses: [], juries: [] };
    expect(deliberationText(none, [], plain)).to.equal(
      'The run has no answers of panels, ranks, judges or juries so far.\n',
    );
    const rank = (kendall: number | null, reason: 'few_reviewers' | 'few_answers' | 'unbalanced' | null): string => {
      const agreement = { kendall_w: kendall, reviewers: 3, reason };
      return deliberationText({ ...none, results: [{ step: 1, node: 'rank', points: [], agreement }] }, [], plain);
    };
    expect(rank(0.75, null)).to.include("0.75 among 3 reviewers (Kendall's W). From 0, no common order, to 1");
    expect(rank(null, 'few_reviewers')).to.include('not defined: it needs at least 3 reviewers.');
    expect(rank(null, 'few_answers')).to.include('not defined: it needs at least 3 answers.');
    expect(rank(null, 'unbalanced')).to.include('not defined: the reviewers saw different answers.');
    const jury = (alpha: number | null, reason: 'one_round' | 'no_variation' | 'one_rater' | null): string => {
      const agreement = { alpha, spread: 2.5, members: 2, reason };
      const scores = [{ member: 'ash', model: MODEL, score: 7, feedback: 'Good' }];
      const record = { step: 1, node: 'jury', scores, aggregate: 'median' as const, score: 7, agreement };
      return deliberationText({ ...none, juries: [record] }, [], plain);
    };
    expect(jury(-0.1, null)).to.include('differ by 2.5.').and.include('is -0.1: 1 means equal scores in each round');
    expect(jury(null, 'one_round')).to.include('not defined: it needs two rounds');
    expect(jury(null, 'no_variation')).to.include('not defined: all scores are equal');
    expect(jury(null, 'one_rater')).to.include('not defined: it needs two scores in a round');
  });

  it('shows what happened in its order, by labels, with kept answers, failed reviewers and a key to letters', () => {
    const members = [
      { id: 'a', label: 'Ash' },
      { id: 'b', label: 'Elm' },
    ];
    const nodes = [
      { id: 'p', label: 'Minds', role: 'panel', members },
      { id: 'r', label: 'Review', role: 'rank' },
      { id: 'j', label: 'Compare', role: 'judge' },
    ];
    const closed = { discarded: [], route: { next: [], reason: '' } };
    const analysis = { consensus: [], contradictions: [], partial_coverage: [], unique_insights: [], blind_spots: [] };
    const points = [
      { member: 'b', points: 1, rank: 1 },
      { member: 'a', points: 0, rank: 2 },
    ];
    const agreement = { kendall_w: null, reviewers: 1, reason: 'few_reviewers' as const };
    const asked = { model: MODEL, order_shown: ['b', 'a'] };
    const answer = (step: number, member: string, text: string) => ({
      step,
      node: 'p',
      member,
      label: member,
      model: MODEL,
      text,
      status: 'answered' as const,
      error: null,
    });
    const failed = { member: 'b', panelStep: 4, step: 5, final: true, message: 'No such model' };
    const recorded = [
      { type: 'RunRequested', data: { graph: { nodes } } },
      {
        type: 'PanelClosed',
        data: { ...closed, node: 'p', panelStep: 1, answered: ['a', 'b'], failed: [], result: null },
      },
      { type: 'NodeCompleted', data: { node: 'j', step: 3, output: { analysis } } },
      { type: 'NodeFailed', data: { node: 'r', ...failed } },
      {
        type: 'PanelClosed',
        data: {
          ...closed,
          node: 'r',
          panelStep: 4,
          answered: ['a'],
          failed: ['b'],
          result: { points, kept: ['b'], agreement },
        },
      },
      {
        type: 'PanelClosed',
        data: { ...closed, node: 'p', panelStep: 6, answered: ['a', 'b'], failed: [], result: null },
      },
    ];
    const events = JSON.parse(JSON.stringify(recorded)) as readonly RunEvent[];
    const text = deliberationText(
      {
        answers: [answer(1, 'a', 'One'), answer(1, 'b', 'Two'), answer(6, 'a', 'Three'), answer(6, 'b', 'Four')],
        rankings: [{ step: 4, node: 'r', reviewer: 'a', ...asked, ranking: ['b', 'a'], comment: 'A is best.' }],
        results: [{ step: 4, node: 'r', points, agreement }],
        analyses: [{ step: 3, node: 'j', ...asked, analysis }],
        juries: [],
      },
      events,
      plain,
    );
    expect(text.split('\n').filter((line) => /^\S/.test(line))).to.deep.equal([
      ...['Answers of panel Minds', 'Analysis by judge Compare', 'Ranking by Review'],
      ...['Rankings of the reviewers, best first', 'Answers of panel Minds'],
    ]);
    expect(text.split('\n')).to.include.members([
      ...['  Ash  answered  openai/oak', '  Kept for later nodes: Elm', '  Elm  failed', '    No such model'],
      ...['  Ash in Review, openai/oak: Elm, Ash', '    A is best.', '    (A is Elm, B is Ash)'],
      '  openai/oak; response A is Elm, B is Ash',
    ]);
  });

  it('keeps the executions before a fork apart, each with its own answers, rankings and result', () => {
    const answer = (step: number, text: string) => ({
      step,
      node: 'panel',
      member: 'ash',
      label: 'ash',
      model: MODEL,
      text,
      status: 'answered' as const,
      error: null,
    });
    const of = { node: 'rank', model: MODEL, order_shown: ['ash'], ranking: ['ash'], comment: '' };
    const agreement = { kendall_w: null, reviewers: 1, reason: 'few_reviewers' as const };
    const points = [{ member: 'ash', points: 0, rank: 1 }];
    const text = deliberationText(
      {
        answers: [answer(1, 'One'), answer(4, 'Two')],
        rankings: [
          { ...of, step: 2, reviewer: 'oak' },
          { ...of, step: 5, reviewer: 'elm' },
        ],
        results: [2, 5].map((step) => ({ step, node: 'rank', points, agreement })),
        analyses: [],
        juries: [],
      },
      [],
      plain,
    );
    const round = ['Answers of panel panel', 'Ranking by rank', 'Rankings of the reviewers, best first'];
    expect(text.split('\n').filter((line) => /^\S/.test(line))).to.deep.equal([...round, ...round]);
    expect(text).to.match(/^ {2}oak in rank, .*Answers of panel panel.*^ {2}elm in rank, /ms);
  });

  it('shows members that failed or were too late, and no character that controls a terminal', () => {
    const answer = { step: 1, node: 'panel', label: 'ash', member: 'ash', model: MODEL, text: null, error: null };
    const text = deliberationText(
      {
        rankings: [],
        results: [],
        analyses: [],
        juries: [],
        answers: [
          { ...answer, status: 'discarded' },
          { ...answer, member: 'elm', status: 'failed', error: 'No \u001b[2J such thing' },
          { ...answer, step: 3, status: 'answered', text: 'Another\nround \u202e' },
        ],
      },
      [],
      plain,
    );
    expect(text).to.equal(
      [
        'Answers of panel panel',
        `  ash  discarded  ${MODEL}`,
        '    It had not answered when the panel closed or the run ended.',
        `  ash (elm)  failed  ${MODEL}`,
        '    No \uFFFD[2J such thing',
        '',
        'Answers of panel panel',
        `  ash  answered  ${MODEL}`,
        '    Another',
        '    round \uFFFD',
        '',
      ].join('\n'),
    );
  });
});

describe('council run', () => {
  it('shows each node with members once', async () => {
    const bench = councilBench();
    const nodes = [
      { id: 'panel', type: 'panel', members: [{}, {}, {}] },
      { id: 'rank', type: 'rank' },
      { id: 'jury', type: 'critic', members: [{}, {}] },
    ];
    const edges = [
      { source: 'panel', target: 'rank' },
      { source: 'rank', target: 'jury' },
    ];
    const file = bench.written('council.json', JSON.stringify({ name: 'Oaks', nodes, edges }));
    const ended = await bench.run(['Oaks', '--blueprint', file]);
    expect(ended.code, ended.stderr).to.equal(0);
    const shown = [...ended.stderr.matchAll(/^ *[\d.]+ s {2}(\w+)/gm)].map(([, node]) => node);
    expect(shown).to.deep.equal(['panel', 'rank', 'jury']);
    expect(ended.stderr).to.match(/^Completed in .*: score \d+, iterations 1/m);
    await bench.clear();
  });
});

describe('The line of an event of a panel', () => {
  const lineOf = (type: string, data: object): string =>
    eventLine({ seq: 1, id: 'e', type, at: '2026-01-01', hash: '', data: { node: 'n', ...data } }, plain, null);

  it('names the member', () => {
    const of = { member: 'ash', panelStep: 1, step: 1, attempt: 1 };
    expect(lineOf('NodeStarted', { ...of, model: MODEL })).to.match(/ ash: step 1, openai\/oak$/);
    const by = { ...of, model: MODEL };
    expect(lineOf('NodeCompleted', { ...by, output: { answer: 'Yes.' } })).to.match(/ ash: .*: answer of 4 characters/);
    expect(lineOf('NodeCompleted', { ...by, output: { ranking: ['B', 'A'], comment: 'So' } })).to.match(
      / ash: .*: ranked B, A "So"$/,
    );
    const analysis = { consensus: ['x'], contradictions: [], blind_spots: ['y', 'z'] };
    expect(lineOf('NodeCompleted', { ...by, output: { analysis } })).to.match(
      /: analysis: consensus 1, contradictions 0, blind spots 2$/,
    );
    expect(lineOf('NodeFailed', { ...of, kind: 'refused', message: 'No.', retryable: false, final: true })).to.match(
      / ash: refused: .*No\.$/,
    );
  });

  it('shows how long the others have, and what has become of the members', () => {
    expect(lineOf('QuorumReached', { until: '12:00' })).to.match(/QuorumReached .* the others have until 12:00$/);
    const closed = { answered: ['a', 'b'], failed: ['c'], discarded: [], route: { next: ['write'], reason: '' } };
    expect(lineOf('PanelClosed', { ...closed, result: null })).to.match(/ to write: answered a, b; failed c$/);
    expect(lineOf('PanelClosed', { ...closed, result: { kept: ['b'] } })).to.match(/; failed c; kept b$/);
    expect(lineOf('PanelClosed', { ...closed, result: { score: 7 } })).to.match(/; failed c; score 7$/);
  });
});
