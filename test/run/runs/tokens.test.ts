import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Token } from '../../../src/run/runs/tokens.js';
import { TokenBus } from '../../../src/run/runs/tokens.js';
import { modelFailed } from '../../../src/models/failed-exchange.js';
import { isFinished } from '../../../src/run/state.js';
import { nodeSystem } from '../../../src/system/system.js';
import { graphOf } from '../../support/given.js';
import type { TestEngine } from '../../support/open-engine.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { runWhen } from '../../support/run-when.js';
import { scriptedModel } from '../../support/scripted-model.js';
import { tempDir } from '../../support/temp-dir.js';

const FROM = { node: 'n', step: 1, attempt: 1 };

const logger = { error: () => undefined };

describe('The token bus', () => {
  it('delivers the tokens of a run to its listeners only', async () => {
    const bus = new TokenBus({ logger });
    const heard: Token[] = [];
    bus.subscribe('one', (token) => heard.push(token));
    bus.sinkFor('one', FROM)?.('A ', 1);
    await nextTurn();
    expect(heard).to.deep.equal([{ runId: 'one', ...FROM, turn: 1, offset: 0, text: 'A ' }]);
    expect(bus.sinkFor('two', FROM)).to.equal(null);
  });

  it('shows a late listener how much of a turn it has missed', async () => {
    const bus = new TokenBus({ logger });
    const heard: (string | number)[] = [];
    bus.subscribe('one', () => undefined);
    const sink = bus.sinkFor('one', FROM);
    sink?.('A 🦭 ', 1);
    await nextTurn();
    bus.subscribe('one', ({ turn, offset, text }) => heard.push(turn, offset, text));
    sink?.('draft', 1);
    sink?.('Anew', 2);
    await nextTurn();
    expect(heard).to.deep.equal([1, 5, 'draft', 2, 0, 'Anew']);
  });

  it('joins the texts of one tick up to a size, within one turn', async () => {
    const bus = new TokenBus({ logger });
    const heard: (readonly [number, number, number])[] = [];
    bus.subscribe('one', ({ turn, offset, text }) => heard.push([turn, offset, text.length]));
    const sink = bus.sinkFor('one', FROM);
    for (let word = 0; word < 20_000; word += 1) sink?.('word ', word < 19_999 ? 1 : 2);
    await nextTurn();
    sink?.('more', 2);
    await nextTurn();
    expect(heard).to.have.lengthOf.below(30);
    expect(heard.reduce((sum, [, , length]) => sum + length, 0)).to.equal(100_004);
    expect(heard.slice(-2)).to.deep.equal([
      [2, 0, 5],
      [2, 5, 4],
    ]);
  });

  it('has no sink without listeners, and stores nothing', async () => {
    const bus = new TokenBus({ logger });
    const heard: string[] = [];
    const listen = () => bus.subscribe('one', ({ text }) => heard.push(text));
    const listening = listen();
    const sink = bus.sinkFor('one', FROM);
    listening?.();
    listening?.();
    sink?.('lost', 1);
    await nextTurn();
    expect(bus.sinkFor('one', FROM)).to.equal(null);
    listen();
    sink?.('heard', 1);
    await nextTurn();
    expect(heard).to.deep.equal(['heard']);
  });

  it('removes a listener that throws and continues with the others', async () => {
    const faults: unknown[] = [];
    const heard: string[] = [];
    const bus = new TokenBus({ logger: { error: (fields) => faults.push(fields) } });
    bus.subscribe('one', () => {
      throw new Error('Oh');
    });
    bus.subscribe('one', ({ text }) => heard.push(text));
    for (const text of ['A ', 'draft']) bus.sinkFor('one', FROM)?.(text, 1);
    await nextTurn();
    expect(heard).to.deep.equal(['A ', 'draft']);
    expect(faults).to.have.length(1);
    expect(faults[0]).to.have.property('runId', 'one');
  });

  it('refuses a listener over the limit until another is removed', () => {
    const bus = new TokenBus({ logger });
    const listening = Array.from({ length: 10_000 }, () => bus.subscribe('one', () => undefined));
    expect(bus.subscribe('two', () => undefined)).to.equal(null);
    listening[0]?.();
    expect(bus.subscribe('two', () => undefined)).to.be.a('function');
  });
});

describe('A run with a listener', () => {
  const dir = tempDir();
  let engine: TestEngine;
  afterEach(() => engine.stop());
  after(() => dir.remove());

  it('completes though no streamed answer comes in time: later attempts ask for the whole answer', async () => {
    const runId = nodeSystem().uuid();
    const late = modelFailed('None came within 120000 ms', 'timeout');
    const model = scriptedModel(({ onToken }) => (onToken === undefined ? { text: 'A draft' } : { error: late }));
    engine = await openTestEngine({ path: dir.path, model });
    engine.tokens.subscribe(runId, () => undefined);
    await engine.registry.start(runRequest(runId, { graph: graphOf('only') }));
    expect((await runWhen(engine, runId, isFinished)).phase.status).to.equal('completed');
    expect(model.requests.map(({ onToken }) => onToken !== undefined)).to.deep.equal([true, false]);
  });
});
