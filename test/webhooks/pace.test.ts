import { expect } from 'chai';
import { Pace } from '../../src/webhooks/pace.js';
import { manualSystem } from '../support/manual-system.js';

describe('The pace of attempts', () => {
  it('allows 300 a second, and lets the webhooks that wait take turns', () => {
    const system = manualSystem();
    const pace = new Pace(system);
    const started: string[] = [];
    /** A webhook that always has a further delivery. */
    const webhook = (name: string): (() => void) => {
      const pump = (): void => {
        while (pace.take(pump)) started.push(name);
      };
      return pump;
    };
    webhook('first')();
    expect(started).to.have.length(300);
    for (const name of ['second', 'third']) webhook(name)();
    expect(started).to.have.length(300);
    system.advance(1_000);
    const later = started.slice(300);
    expect(later).to.have.length(300);
    for (const name of ['first', 'second', 'third'])
      expect(later.filter((each) => each === name)).to.have.length.within(99, 101);
    pace.stop();
    system.advance(1_000);
    expect(started).to.have.length(600);
    expect(system.timers()).to.equal(0);
  });
});
