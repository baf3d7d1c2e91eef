import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import type { Digester } from '../../../src/console/record/chain.js';
import { ChainCheck } from '../../../src/console/record/chain.js';
import { goldenRecords, history } from '../../support/console-records.js';
import { goldenHistories } from '../../support/golden-histories.js';

const { subtle } = globalThis.crypto;

describe('The check of a chain in the browser', () => {
  it('accepts every golden history', async () => {
    for (const [name, events] of [...goldenHistories(), ...goldenRecords()]) {
      const result = await new ChainCheck(subtle).check(events);
      const [checked, headHash] = [events.length, events.at(-1)?.hash];
      expect(result, name).to.deep.equal({ checked, valid: true, firstDifference: null, headHash });
    }
  });

  it('finds one changed character anywhere', async () => {
    const events = history('tool-calls');
    const text = JSON.stringify(events);
    for (const [from, to] of [
      ['Oaks', 'Oakz'],
      ['"round":1', '"round":2'],
      ['2026-', '2025-'],
      ['NodeFailed', 'NodeFalled'],
    ] as const) {
      const changed = JSON.parse(text.replace(from, to)) as RunEvent[];
      const at = changed.findIndex((event, seq) => JSON.stringify(event) !== JSON.stringify(events[seq]));
      const result = await new ChainCheck(subtle).check(changed);
      expect([result.valid, result.checked, result.firstDifference?.seq], from).to.deep.equal([false, at, at]);
      expect(result.firstDifference?.what).to.match(/hash does not match/);
    }
  });

  it('finds a removed or moved event', async () => {
    const events = history('branches');
    const without = [...events.slice(0, 4), ...events.slice(5)];
    expect((await new ChainCheck(subtle).check(without)).firstDifference).to.deep.equal({
      seq: 4,
      what: 'event 5 is in place of event 4',
    });
    const renumbered = without.map((event, seq) => ({ ...event, seq }));
    expect((await new ChainCheck(subtle).check(renumbered)).firstDifference?.seq).to.equal(4);
    const [a, b, ...rest] = events.slice(4);
    if (a === undefined || b === undefined) throw new Error('too short');
    const swapped = [...events.slice(0, 4), { ...b, seq: 4 }, { ...a, seq: 5 }, ...rest];
    expect((await new ChainCheck(subtle).check(swapped)).firstDifference?.seq).to.equal(4);
  });

  it('rejects data that is not valid JSON', async () => {
    const [first] = history('cancel');
    if (first?.type !== 'RunRequested') throw new Error('too short');
    const odd = { ...first, data: { ...first.data, inputTopic: '\ud800' } };
    expect((await new ChainCheck(subtle).check([odd])).firstDifference?.what).to.match(/not valid JSON/);
  });

  it('checks each event once, also in concurrent calls', async () => {
    const events = history('blueprint');
    let digests = 0;
    const counting: Digester = {
      digest(algorithm, data) {
        digests += 1;
        return subtle.digest(algorithm, data);
      },
    };
    const check = new ChainCheck(counting);
    const [once] = await Promise.all([check.check(events.slice(0, 5)), check.check(events), check.check(events)]);
    expect(once.checked).to.equal(5);
    expect([digests, check.result.checked, check.result.valid]).to.deep.equal([events.length, events.length, true]);
  });

  it('resumes after a failed digest', async () => {
    const events = history('cancel');
    let isBroken = true;
    const check = new ChainCheck({
      digest: (algorithm, data) => (isBroken ? Promise.reject(new Error('gone')) : subtle.digest(algorithm, data)),
    });
    const failed = await check.check(events).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error);
    isBroken = false;
    expect((await check.check(events)).valid).to.equal(true);
  });
});
