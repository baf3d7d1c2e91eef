import { expect } from 'chai';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import { recordCheck } from '../../src/audit/record-check.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

async function* idsOf(...ids: readonly string[]): AsyncGenerator<string> {
  yield* ids;
}

describe('The check of records at the start', () => {
  it('completes before the start continues if there are few records', async () => {
    const system = manualSystem();
    const verified: string[] = [];
    const verify = async (id: string): Promise<void> => void verified.push(id);
    await recordCheck({ verify, system, onFault: () => undefined }).start(idsOf('a', 'b'));
    expect(verified).to.deep.equal(['a', 'b']);
    expect(system.timers()).to.equal(0);
  });

  it('continues in the background after 100 ms, and ends when the service stops', async () => {
    const system = manualSystem();
    const verified: string[] = [];
    let goOn: () => void = () => undefined;
    const verify = (id: string): Promise<void> => {
      verified.push(id);
      return new Promise((resolve) => (goOn = resolve));
    };
    const check = recordCheck({ verify, system, onFault: () => undefined });
    let isStarted = false;
    const starting = check.start(idsOf('a', 'b', 'c')).then(() => (isStarted = true));
    await untilTrue(() => verified.length === 1);
    system.advance(99);
    await Promise.resolve();
    expect(isStarted).to.equal(false);
    system.advance(1);
    await starting;
    goOn();
    await untilTrue(() => verified.length === 2);
    const stopped = check.stop();
    goOn();
    await stopped;
    expect(verified).to.deep.equal(['a', 'b']);
  });

  it('retries while the log is unavailable, and reports any other error once', async () => {
    const system = manualSystem();
    const faults: unknown[] = [];
    const answers = [new LogUnavailable(), null, new Error('a fault'), null];
    const verify = async (): Promise<void> => {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
    };
    const check = recordCheck({ verify, system, onFault: (error) => faults.push(error) });
    const starting = check.start(idsOf('a', 'b', 'c'));
    await untilTrue(() => system.timers() === 2);
    system.advance(50);
    await starting;
    expect(faults.map(String)).to.deep.equal(['Error: a fault']);
    expect(answers).to.have.length(1);
  });
});
