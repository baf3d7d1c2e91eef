import { expect } from 'chai';
import { Cancellation } from '../../src/system/async/deadline.js';

describe('A cancellation', () => {
  it('calls its listeners once, in the order in which they were added', () => {
    const cancellation = new Cancellation();
    const seen: unknown[] = [];
    cancellation.addEventListener('abort', () => seen.push(['first', cancellation.reason]));
    cancellation.addEventListener('abort', () => seen.push(['second', cancellation.aborted]));
    expect(cancellation.aborted).to.equal(false);
    const reason = new Error('enough');
    cancellation.abort(reason);
    cancellation.abort(new Error('again'));
    expect(seen).to.deep.equal([
      ['first', reason],
      ['second', true],
    ]);
    expect(cancellation.reason).to.equal(reason);
  });

  it('does not call a listener that was removed, or that was added after the abort', () => {
    const cancellation = new Cancellation();
    let calls = 0;
    const listener = (): void => void (calls += 1);
    cancellation.addEventListener('abort', listener);
    cancellation.removeEventListener('abort', listener);
    cancellation.abort(new Error('enough'));
    cancellation.addEventListener('abort', listener);
    expect(calls).to.equal(0);
  });

  it('throws its reason once it is aborted, and nothing before', () => {
    const cancellation = new Cancellation();
    cancellation.throwIfAborted();
    cancellation.abort(new Error('enough'));
    expect(() => cancellation.throwIfAborted()).to.throw('enough');
  });
});
