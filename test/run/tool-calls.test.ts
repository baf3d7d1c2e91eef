import { expect } from 'chai';
import { renderPrompt } from '../../src/council/prompt.js';
import { promptInputFor } from '../../src/run/frontier/node-start.js';
import { TransitionRefused } from '../../src/run/chart/machine.js';
import { attemptOf, broke, given, graphOf, usedTool, toolCalled, wrote } from '../support/given.js';

const ID = '4f2a9c01'.padEnd(64, '0');
const page = (number: number) => ({ document: ID, page: number, chunk: number, score: 0.5 });
const reading = { tools: { webSearch: true, pdfReader: true } };

describe('A call of a tool', () => {
  it('is recorded for the attempt in flight and starts no node', () => {
    const story = given(graphOf('plan -> write', reading)).when(usedTool('plan', [page(3)]));
    story.then('ToolCalled plan 1.1 pdf_reader');
    expect(story.run.progress.sources).to.deep.equal(['4f2a9c01:3']);
    story.when(wrote('plan')).then('NodeCompleted plan 1.1 -> write', 'NodeStarted write 2.1');
  });

  it('has no effect for another attempt than the one in flight', () => {
    const story = given(graphOf('plan -> write', reading));
    const late = usedTool('plan');
    const command = typeof late === 'function' ? late(story.run) : late;
    story.when(broke('plan', 100)).when(command).then();
    story.when(wrote('plan')).when(command).then();
    story.when({ type: 'CancelRun', actor: null }).when(command).then();
  });

  it('belongs to its branch while others are in flight', () => {
    const story = given(graphOf('split -> left, right', reading)).whenAll(
      wrote('split'),
      usedTool('left', [page(1)]),
      usedTool('right', [page(2)]),
      usedTool('left'),
      wrote('left'),
    );
    story.when(usedTool('right', [page(1)])).then('ToolCalled right 3.1 pdf_reader');
    expect(story.run.progress.sources).to.deep.equal(['4f2a9c01:1', '4f2a9c01:2']);
    expect(() => story.recorded(toolCalled({ node: 'left', step: 2, attempt: 1 }))).to.throw(TransitionRefused);
  });

  it('of a lost attempt is repeated by the next, and both are recorded', () => {
    const story = given(graphOf('plan', reading))
      .when(usedTool('plan', [page(3)]))
      .when({ type: 'ClaimRun', reason: 'recovered' }, 'two')
      .when(usedTool('plan', [page(3)]));
    expect(story.events.filter(({ type }) => type === 'ToolCalled').map(({ data }) => data)).to.have.nested.property(
      '[1].attempt',
      2,
    );
  });
});

describe('The tools of a node', () => {
  it('are recorded at its start, and its prompt follows from the record', () => {
    const story = given(graphOf('plan -> write', reading));
    const started = story.events.find(({ type }) => type === 'NodeStarted');
    expect(started?.data).to.have.deep.property('tools', ['webSearch: unavailable', 'pdfReader']);
    const brief = promptInputFor(story.run, attemptOf(story.run, 'plan'));
    expect(brief).to.deep.include({ tools: ['pdfReader'], missingTools: ['webSearch'] });
    const { system } = renderPrompt(brief);
    expect(system)
      .to.include('You have a reader of uploaded PDF documents')
      .and.include('You were promised a web search')
      .and.include('[4f2a9c01:3]');
  });
});

describe('A completed run', () => {
  const ended = (draft: string, pages: readonly number[]) =>
    given(graphOf('plan', reading))
      .when(usedTool('plan', pages.map(page)))
      .when(wrote('plan', draft)).facts[1];

  it('lists the marks of pages that no tool returned', () => {
    expect(ended('A [4f2a9c01:3], B [4f2a9c01:9].', [3])?.data).to.have.deep.property('unknownCitations', [
      '4f2a9c01:9',
    ]);
    expect(ended('A [4f2a9c01:3].', [3])?.data).to.have.deep.property('unknownCitations', []);
  });
});
