import { expect } from 'chai';
import type { ChildEndedData, GraphNode, RunFailedData } from '../../../src/generated/schemas.js';
import { childrenUnderWay } from '../../../src/run/children/children.js';
import { decide } from '../../../src/run/decide.js';
import { NO_EFFORT, usageOf } from '../../../src/run/effort.js';
import { contextOf, given, graphOf, graphWith, wrote } from '../../support/given.js';

describe('The end of a run whose councils wait for others', () => {
  const council = { id: 'part', name: 'Part', version: 1, graph: graphOf('write') };

  /** The facts of the end of the second run, while the first has ended as given. */
  function endOfSecond(
    first: Partial<ChildEndedData>,
    second: Partial<ChildEndedData>,
    { failure = null, ...node }: Partial<GraphNode> & { readonly failure?: RunFailedData | null } = {},
  ) {
    const fields = { role: 'council', council, forEach: 'lines', maxParallel: 2, onError: 'fail', ...node } as const;
    const { edges } = graphOf('plan -> parts');
    const story = given(graphWith([{ id: 'plan' }, { id: 'parts', ...fields }], edges))
      .when(wrote('plan', '- One\n- Two'))
      .when({ type: 'StartChildren', step: 2 });
    const usage = usageOf(NO_EFFORT);
    const ends = childrenUnderWay(story.run).map(({ at: { step }, child }): ChildEndedData => {
      const { index, runId } = child;
      const end = { status: 'failed', usage, costUsd: null, headHash: 'a'.repeat(64), output: null } as const;
      return { step, node: 'parts', index, child: runId, ...end, ...(index === 0 ? first : second) };
    });
    const [other, end] = ends;
    if (other === undefined || end === undefined) throw new Error('Two runs were expected');
    const command = { type: 'EndChild', end, failure } as const;
    return decide(story.chart, story.snapshot, { command, context: contextOf('one'), ends: [other] }).facts;
  }

  const cancelled = { error: 'Cancelled with its parent run: Cancelled by the user', isCancelled: true } as const;

  for (const onError of ['fail', 'skip'] as const)
    it(`follows after a crash from a run that was cancelled for it, with "${onError}"`, () => {
      const failure = { kind: 'cancelled', error: 'Cancelled by the user', node: null, actor: 'ann' } as const;
      const facts = endOfSecond({ status: 'completed', output: 'Text' }, cancelled, { onError, failure });
      expect(facts.map(({ type }) => type)).to.deep.equal(['ChildEnded', 'ChildEnded', 'RunFailed']);
      expect(facts.at(-1)?.data).to.deep.include(failure);
    });
});
