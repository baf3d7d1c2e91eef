import { expect } from 'chai';
import type { AttemptFailureKind } from '../../src/council/executors.js';
import type { RunState } from '../../src/run/state.js';
import { reportOf } from '../../src/run/runs/attempts.js';
import type { Story, When } from '../support/given.js';
import { attemptOf, given, graphOf, wrote } from '../support/given.js';

const SECOND = 'two/model-2';
const THIRD = 'three/model-3';
/** The first node's own model is `model-1`. */
const chain = graphOf('plan -> write', { fallbacks: [SECOND, THIRD] });

function ended(
  kind: AttemptFailureKind,
  { retryable = false, outageMs }: { retryable?: boolean; outageMs?: number } = {},
): When {
  const failure = { kind, message: kind, retryable, ...(outageMs !== undefined && { outageMs }) };
  const options = { maxAttempts: 2, random: 0.5, prices: { priceOf: () => null } };
  return (run: RunState) => reportOf(attemptOf(run, 'plan'), { kind: 'failed', failure }, options);
}

function failedAttempts({ facts }: Story): unknown[] {
  return facts.flatMap((fact) => (fact.type === 'NodeFailed' ? [[fact.data.model, fact.data.fallbackTo]] : []));
}

describe('The fallbacks of a node', () => {
  it('are asked in order, each as a new attempt, until none is left', () => {
    const first = given(chain).when(ended('unauthorized'));
    expect(failedAttempts(first)).to.deep.equal([['model-1', SECOND]]);
    expect(attemptOf(first.run, 'plan')).to.include({ attempt: 2, model: SECOND, failures: 0, delayMs: 0 });
    const second = first.when(ended('model_unknown'));
    expect(failedAttempts(second)).to.deep.equal([[SECOND, THIRD]]);
    const last = second.when(ended('quota_used_up'));
    expect(failedAttempts(last)).to.deep.equal([[THIRD, undefined]]);
    expect(last.run.phase.status).to.equal('failed');
  });

  it('answer in place of the model, which the record names', () => {
    const story = given(chain).when(ended('forbidden')).when(wrote('plan'));
    const completed = story.facts.find(({ type }) => type === 'NodeCompleted');
    expect(completed?.data).to.include({ node: 'plan', model: SECOND });
  });

  it('follow an outage or a rate limit only once its budget is spent', () => {
    for (const kind of ['unavailable', 'rate_limited', 'connection_refused'] as const) {
      const waiting = given(chain).when(ended(kind, { retryable: true, outageMs: 1000 }));
      expect(attemptOf(waiting.run, 'plan')).to.include({ attempt: 2, model: 'model-1' });
      const spent = waiting.when(ended(kind));
      expect(attemptOf(spent.run, 'plan'), kind).to.include({ attempt: 3, model: SECOND, outage: null, failures: 0 });
    }
  });

  it('have the maximum of attempts each', () => {
    const again = given(chain)
      .when(ended('unauthorized'))
      .when(ended('server_error', { retryable: true }));
    expect(attemptOf(again.run, 'plan')).to.include({ attempt: 3, model: SECOND, failures: 1 });
  });

  it('are not asked after a refused content, an unusable answer, a bad request or a deadline', () => {
    for (const kind of [
      'refused',
      'safety',
      'content_filter',
      'prompt_blocked',
      'bad_request',
      'empty_answer',
      'max_tokens',
      'timeout',
    ] as const) {
      const story = given(chain).when(ended(kind));
      expect(failedAttempts(story), kind).to.deep.equal([['model-1', undefined]]);
      expect(story.run.phase.status, kind).to.equal('failed');
    }
  });

  it('go on from where they were after a takeover', () => {
    const claim = { type: 'ClaimRun', reason: 'recovered' } as const;
    const story = given(chain).when(ended('unauthorized')).when(claim, 'two');
    expect(attemptOf(story.run, 'plan')).to.include({ attempt: 3, model: SECOND });
    expect(failedAttempts(story.when(ended('unauthorized')))).to.deep.equal([[SECOND, THIRD]]);
  });

  it('leave out a model that was asked before', () => {
    const twice = graphOf('plan -> write', { fallbacks: ['model-1', SECOND] });
    expect(failedAttempts(given(twice).when(ended('unauthorized')))).to.deep.equal([['model-1', SECOND]]);
  });

  it('of a later node are its own', () => {
    const story = given(chain).when(ended('unauthorized')).when(wrote('plan'));
    expect(attemptOf(story.run, 'write')).to.include({ attempt: 1, model: 'model-1' });
  });
});
