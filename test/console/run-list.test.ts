import { expect } from 'chai';
import type { FeedEvent } from '../../src/client/feed.js';
import { CouncilClient } from '../../src/client/client.js';
import { RunList } from '../../src/console/pages/runs/run-list.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

describe('The list of runs in the console', () => {
  let service: RunningService;
  let model: ScriptedModel;
  let council: CouncilClient;

  before(async () => {
    model = scriptedModel(() => 'hold');
    service = await startService({ model });
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  it('reads visible runs again periodically, without an event', async () => {
    const run = await council.runs.start({ topic: 'The sea' });
    const { list, pass, see, looks, isAnswered } = listWithoutFeed();
    const status = (): string | undefined => list.rows.value[0]?.value.status;
    // The requests that the list makes when it begins.
    pass(1_000);
    list.show({});
    await untilTrue(() => status() === 'running');
    pass(1_000);
    await untilTrue(() => looks() === 1 && isAnswered());
    await run.cancel();
    see(false);
    pass(60_000);
    see(true);
    pass(18_000);
    expect([status(), looks()]).to.deep.equal(['running', 1]);
    pass(1_000);
    await untilTrue(() => status() === 'failed');
    list.stop();
  });

  it('checks for new runs periodically, without an event', async () => {
    const { list, pass, isAnswered } = listWithoutFeed();
    pass(1_000);
    list.show({});
    await untilTrue(() => list.total.value !== null && list.state.value === 'end');
    await council.runs.start({ topic: 'Unheard' });
    pass(19_000);
    expect(list.rows.value.map((row) => row.value.topic)).not.to.include('Unheard');
    pass(1_000);
    await untilTrue(() => list.rows.value[0]?.value.topic === 'Unheard' && isAnswered());
    list.stop();
  });

  /** A list of a real service that receives no events, with a manual clock. */
  function listWithoutFeed() {
    let [nowMs, isSeen] = [0, true];
    let [looks, open] = [0, 0];
    const seen = new CouncilClient({
      url: service.url,
      async fetch(input, init) {
        open += 1;
        const answer = await fetch(input, init);
        open -= 1;
        if (/runs\/[-0-9a-f]{36}$/.test(new Request(input).url)) looks += 1;
        return answer;
      },
    });
    const due: { readonly atMs: number; readonly act: () => void }[] = [];
    const list = new RunList({
      council: { runs: seen.runs, run: (id) => seen.run(id), approvals: seen.approvals, feed: silence },
      onFrame: (act) => act(),
      after: (delayMs, act) => void due.push({ atMs: nowMs + delayMs, act }),
      isPageVisible: () => isSeen,
      onFault: (error) => expect.fail(String(error)),
    });
    void list.follow();
    const pass = (ms: number): void => {
      const untilMs = nowMs + ms;
      for (;;) {
        const next = due.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (next === undefined) break;
        due.splice(due.indexOf(next), 1);
        nowMs = next.atMs;
        next.act();
      }
      nowMs = untilMs;
    };
    const see = (isNow: boolean): void => void (isSeen = isNow);
    return { list, pass, see, looks: () => looks, isAnswered: () => open === 0 };
  }
});

/** A feed that never delivers an event. */
function silence() {
  return {
    cursor: null,
    [Symbol.asyncIterator]: () => ({ next: () => new Promise<IteratorResult<FeedEvent>>(() => undefined) }),
  };
}
