import { expect } from 'chai';

import type { RunEvent } from '../../../src/client/run-events.js';
import { agoText, lengthText } from '../../../src/console/record/durations.js';
import { excerpt, shortCount } from '../../../src/console/record/counts.js';
import type { StepUsage } from '../../../src/console/record/attempt-figures.js';
import { eventText } from '../../../src/console/record/event-text.js';
import { stepUsageText, usageText } from '../../../src/console/record/usage-text.js';
import { NO_EFFORT, usageOf } from '../../../src/run/effort.js';
import { attemptFailureText, nextActionText } from '../../../src/run/failure-texts.js';
import { present } from '../../../src/system/element.js';
import { history, recordOf } from '../../support/console-records.js';
import { goldenHistories } from '../../support/golden-histories.js';
import { councilOfMinds } from '../council-of-minds.js';

describe('Event texts', () => {
  it('describe a complete run', () => {
    expect(history('fixed-graph').map((event) => eventText(event))).to.deep.equal([
      'A user started a run of the built-in council on “Trees”.',
      'An instance claimed the run.',
      'The council started its work.',
      'master_agent started with model-1.',
      'master_agent wrote a draft of 11 characters and sent it to critic_agent.',
      'critic_agent started with model-1.',
      'critic_agent scored the draft 6.5 and sent it to master_agent: More depth',
      'master_agent started with model-1.',
      'master_agent wrote a draft of 12 characters and sent it to critic_agent.',
      'critic_agent started with model-1.',
      'critic_agent scored the draft 8 and sent it to writer_agent: from critic_agent',
      'writer_agent started with model-1.',
      'writer_agent wrote a draft of 10 characters and ended its branch.',
      'The council finished after 2 drafts with score 8.',
    ]);
  });

  it('tell what the members of panels, ranks and juries did, and what followed from it', () => {
    const said = councilOfMinds().events.map((event) => eventText(event));
    expect(said).to.include.members([
      'north of panel started with sea/large.',
      'north of panel answered with 26 characters.',
      'moon of panel started attempt 2 with sky/one after a wait of 500 ms.',
      'Attempt 2 of moon of panel failed: The call to the model failed. panel continues without this member.',
      'The quorum of panel has answered: the other members have 30 s left.',
      'panel closed with the answers of north, east and south (moon failed, west came too late) and sent it to review.',
      'west of review ranked the answers: C, then B, then A: I like Response C best.',
      'review closed with the order south, north, east from north, east, south and west (moon failed) and sent it to judge.',
      'judge compared the answers and sent it to chair.',
      'a of jury scored the draft 5: Juror a wants more detail.',
      'jury closed with score 6 from a, b and c and sent it to chair.',
    ]);
  });

  it('say how long a person had the draft before them, unless nobody knows', () => {
    const [decided] = history('god-quorum').filter(({ type }) => type === 'GateDecided');
    if (decided?.type !== 'GateDecided') throw new Error('Nobody decided');
    const after = (ms: number, draftSha256: string | null): string => {
      const review = { draftSha256, openedAt: new Date(Date.parse(decided.at) - ms).toISOString() };
      return eventText({ ...decided, data: { ...decided.data, action: 'approve', modifiedState: null, review } });
    };
    expect(after(200_000, 'ab')).to.match(/^ann approved this draft after 3 min 20 s\. Next/);
    expect(after(-1, 'ab')).to.match(/^ann approved the run\. Next/);
    expect(after(200_000, null)).to.match(/^ann approved the run\. Next/);
  });

  it('name who decided what', () => {
    const said = (name: string, type: string) =>
      history(name)
        .filter((event) => event.type === type)
        .map((event) => eventText(event));
    expect(said('god-quorum', 'VoteCast')[0]).to.equal('ann voted to approve.');
    expect(said('god-quorum', 'GateDecided')).to.deep.equal([
      'ann continued the run with current draft changed. Next: write.',
      'eve rejected the run.',
    ]);
    expect(said('budget', 'GateDecided')[0]).to.match(
      /^\S+ \S+ approved the run with a budget of 3000 tokens\. Next: /,
    );
    expect(said('god-deadline', 'GateDecided')[0]).to.equal(
      'The deadline passed without a decision and approved the run. Next: write.',
    );
    expect(said('god-deadline', 'PauseEscalated')).to.deep.equal([
      'The deadline passed without a decision: now eve may decide.',
    ]);
  });

  it('tell what is spent of the budget at its pause, and what the next calls need', () => {
    const placed = { seq: 3, id: 'x', at: '2026-01-01T00:00:00.000Z', hash: '' };
    const spent = { tokens: 40, usd: 0.25 };
    const budget = { usd: 0.5, tokens: 100, spent, needed: { tokens: 140, usd: 0.625 } };
    const data = { gate: 1, nextNodes: ['write'], criticScore: null, iteration: 0, reason: 'budget', budget } as const;
    expect(eventText({ ...placed, type: 'RunPaused', data: { ...data, nextNodes: ['write'] } })).to.equal(
      'The run paused for its budget before write: $0.25 of $0.5, 40 of 100 tokens spent. ' +
        'The next calls need a total budget of at least $0.625 and 140 tokens.',
    );
  });

  it('name the budget at which a run finished, and no God Mode where a pause for the budget was rejected', () => {
    const at = { seq: 9, id: 'x', at: '2026-01-01T00:00:00.000Z', hash: '' };
    const finished = { criticScore: 8, iterationCount: 2, finalDraft: 'x', endedBy: 'budget' } as const;
    expect(eventText({ ...at, type: 'RunCompleted', data: finished })).to.equal(
      'The council stopped at the budget after 2 drafts with score 8; later nodes did not run.',
    );
    const rejected = { kind: 'rejected', error: 'Rejected by the user in God Mode', node: null } as const;
    expect(eventText({ ...at, type: 'RunFailed', data: rejected })).to.equal('The run was rejected at a pause.');
  });

  it('do not contain instance ids', () => {
    for (const [name, events] of goldenHistories()) {
      for (const event of events) {
        if (event.type !== 'RunClaimed' && event.type !== 'RunReleased') continue;
        expect(eventText(event), name)
          .to.match(/\binstance\b/)
          .and.not.to.match(/^\S*\d/);
      }
    }
  });

  it('have one sentence for every event of every history', () => {
    for (const [name, events] of goldenHistories()) {
      for (const event of events) {
        const words = eventText(event);
        expect(words, `${name} ${event.seq}`).to.match(/^\S[^\n]{5,500}$/);
        expect(words, `${name} ${event.seq}`).not.to.match(/undefined|null|\[object/);
      }
    }
  });

  it('are the type name for an unknown type', () => {
    const [first] = history('cancel');
    expect(eventText(JSON.parse(JSON.stringify({ ...first, type: 'RunDreamt' })) as RunEvent)).to.equal('RunDreamt');
  });

  it('stay short whatever models and users write', () => {
    expect(excerpt('word '.repeat(50_000))).to.have.lengthOf(120);
    expect(excerpt(' a\n\n b ')).to.equal('a b');
    expect([...excerpt('🌳'.repeat(200))]).to.have.lengthOf(120);
  });
});

describe('Failure texts', () => {
  it('have a text and advice for a known kind of failure, and none for an unknown kind', () => {
    expect(attemptFailureText('safety')).to.deep.equal({
      what: 'The provider withheld the answer as unsafe.',
      advice: 'Change the topic or the prompt.',
    });
    for (const kind of ['__proto__', 'toString', 'of_tomorrow']) expect(attemptFailureText(kind)).to.equal(null);
  });

  it('say what the service does next, and advise what fits every case', () => {
    const next = (retryable: boolean, more: object = {}): string => nextActionText({ retryable, ...more });
    expect(next(false)).to.equal('The service does not try again.');
    expect(next(false, { fallbackTo: 'ollama/llama3' })).to.equal('The service asks ollama/llama3 instead.');
    expect(next(true, { outageMs: 120_000 })).to.equal('The service waits for the server for up to 120 s.');
    expect(next(true)).to.equal('The service tries again if the node has attempts left.');
    for (const kind of [
      'rate_limited',
      'overloaded',
      'server_error',
      'connection_lost',
      'request_timeout',
      'aborted',
    ]) {
      expect(attemptFailureText(kind)?.advice, kind)
        .to.match(/\.$/)
        .and.not.match(/wait|service tries/i);
    }
  });

  it('advise no fallback to a node that has one, which is asked next', () => {
    for (const kind of ['rate_limited', 'overloaded', 'server_error']) {
      expect(attemptFailureText(kind)?.advice, kind).to.include('add a model to the fallbacks');
      expect(attemptFailureText(kind, 'two/model-2')?.advice, kind)
        .to.match(/^If this repeats.*\w\.$/)
        .and.not.include('fallback');
    }
  });

  it('explain in one sentence why a run ended', () => {
    const last = present(history('failure-without-route').at(-1), 'last event');
    expect(eventText(last)).to.match(/^No edge matched the result of a node\. At judge: No outgoing edge/);
    const cancelled = present(history('cancel').at(-1), 'last event');
    expect(eventText(cancelled)).to.match(/^The run was cancelled\. .*Cancelled by the user$/);
  });
});

describe('Counts and durations as text', () => {
  it('are short and have units', () => {
    expect([0, 950, 1_000, 1_249, 9_960, 34_400, 999_499, 999_500, 1_500_000].map(shortCount)).to.deep.equal([
      ...['0', '950', '1k', '1.2k', '10k', '34k', '999k', '1M', '1.5M'],
    ]);
    expect([-5, 20, 1_500, 61_000, 3_600_000, 90_000_000].map(lengthText)).to.deep.equal([
      ...['0 ms', '20 ms', '1.5 s', '1 min 1 s', '1 h', '1 d 1 h'],
    ]);
    expect([0, 180_000].map(agoText)).to.deep.equal(['just now', '3 min ago']);
  });

  it('name the tokens and the cost of a step, each as not reported if it is unknown', () => {
    const usage = { inputTokens: 1_249, outputTokens: 5, costUsd: 0.0123 };
    const textOf = (used: StepUsage | null): string | null =>
      stepUsageText({ usage: used, state: 'done', isInherited: false });
    expect(textOf(null)).to.equal('tokens and cost not reported');
    expect(textOf(usage)).to.equal('1.2k tokens in, 5 out, $0.012');
    expect(textOf({ ...usage, outputTokens: null, costUsd: null })).to.equal(
      '1.2k tokens in, ? out, cost not reported',
    );
    expect(textOf({ ...usage, costUsd: null, unpriced: ['one/a', 'two/b'] })).to.equal(
      '1.2k tokens in, 5 out, no price for one/a, two/b (see PRICES_FILE)',
    );
    expect(textOf({ ...usage, inputTokens: 0, costUsd: 0 })).to.equal('0 tokens in, 5 out, $0');
    for (const step of [
      { state: 'active', isInherited: false },
      { state: 'done', isInherited: true },
    ] as const) {
      expect(stepUsageText({ ...step, usage: null })).to.equal(null);
    }
  });

  it('name the tokens and the cost of a run, and the calls without them', () => {
    expect(usageText(usageOf(NO_EFFORT))).to.equal('no calls');
    const failed = recordOf(history('failure-after-retries')).snapshotAt(99)?.usage;
    expect(failed && usageText(failed)).to.equal('3 calls (2 retries), tokens and cost not reported');
    const tokens = { inputTokens: 30, outputTokens: 15, costUsd: 0.5 };
    const usage = { ...usageOf(NO_EFFORT), ...tokens, calls: 4, toldCalls: 4, pricedCalls: 4 };
    expect(usageText(usage)).to.equal('4 calls, 30 tokens in, 15 out, $0.50');
    expect(usageText({ ...usage, toldCalls: 3, pricedCalls: 3 })).to.equal(
      '4 calls, 30 tokens in, 15 out, $0.50, not reported for 1 call',
    );
    expect(usageText({ ...usage, toldCalls: 3, pricedCalls: 2 })).to.equal(
      '4 calls, 30 tokens in, 15 out, not reported for 1 call, $0.50, not reported for 2 calls',
    );
    expect(usageText({ ...usage, costUsd: null, pricedCalls: 0 })).to.equal(
      '4 calls, 30 tokens in, 15 out, cost not reported',
    );
    const unpriced = { ...usage, model: 'one/a', calls: 2, toldCalls: 2, pricedCalls: 0, costUsd: null };
    const part = { ...usage, pricedCalls: 2, byModel: [unpriced] };
    expect(usageText(part)).to.equal('4 calls, 30 tokens in, 15 out, $0.50, no price for one/a (see PRICES_FILE)');
    const older = { ...unpriced, model: 'a' };
    expect(usageText({ ...usage, costUsd: null, byModel: [older] })).to.include('15 out, cost not reported');
  });
});
