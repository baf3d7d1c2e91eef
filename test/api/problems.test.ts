import { expect } from 'chai';
import { CouncilError, ServiceStopping } from '../../src/errors.js';
import { AppendOutcomeUnknown, LogUnavailable } from '../../src/eventlog/errors.js';
import { RunCorrupt, RunUnknown, TooManyPending } from '../../src/run/errors.js';
import { RequestRefused, brokenRules, isFault, problemOf } from '../../src/api/problems.js';
import { schemaCheck } from '../support/schema-check.js';

const RUN = '11111111-1111-4111-8111-111111111111';

/** An error whose code has no row in the table. */
class Unlisted extends CouncilError {
  readonly code = 'test.unlisted';
}

describe('A problem answer', () => {
  for (const [error, status, code, retryAfter] of [
    [new RunUnknown({ runId: RUN }), 404, 'run_unknown', undefined],
    [new TooManyPending({ limit: 9 }), 503, undefined, '5'],
    [new LogUnavailable(), 503, undefined, '2'],
    [new ServiceStopping(), 503, undefined, '2'],
    [new AppendOutcomeUnknown({ stream: 'run-x' }), 503, 'outcome_unknown', '2'],
    [brokenRules([{ loc: ['body', 'name'], msg: 'Field required', type: 'missing' }]), 422, undefined, undefined],
  ] as const) {
    it(`of ${error.code} has status ${status} and fits its schema`, () => {
      const { status: answered, body, headers } = problemOf(error, 'request-1');
      expect(answered).to.equal(status);
      expect(body.code).to.equal(code);
      expect(headers['Retry-After']).to.equal(retryAfter);
      expect(schemaCheck('problem.json')(body)).to.equal(true);
      expect(isFault(error)).to.equal(false);
    });
  }

  it('of a fault contains a fixed sentence and the request id, never the error', () => {
    for (const fault of [new TypeError('secret'), new Unlisted('secret', {}), 'secret']) {
      const { status, body } = problemOf(fault, 'request-1');
      expect(status).to.equal(500);
      expect(body).to.deep.equal({ detail: 'The service failed to answer this request (request request-1)' });
      expect(isFault(fault)).to.equal(true);
    }
  });

  it('of a corrupt run says so without the reason', () => {
    const { status, body } = problemOf(new RunCorrupt({ runId: RUN, seq: 3, reason: 'secret' }), 'request-1');
    expect([status, body.detail]).to.deep.equal([500, 'The record of this run is damaged (request request-1)']);
  });

  it('of several broken rules lists all of them in its detail', () => {
    const rule = (name: string) => ({ loc: ['body', name], msg: 'Field required', type: 'missing' });
    const { body } = problemOf(brokenRules([rule('a'), rule('b')]), '');
    expect(body.detail).to.equal('body.a: Field required; body.b: Field required');
    expect(body.errors).to.have.lengthOf(2);
  });

  it('of a refusal keeps its headers', () => {
    const headers = { Allow: 'GET' };
    expect(problemOf(new RequestRefused('No', { status: 405, headers }), '')).to.deep.equal({
      status: 405,
      body: { detail: 'No' },
      headers,
    });
  });
});
