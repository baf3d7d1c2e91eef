import { expect } from 'chai';
import { failedKeys } from '../../src/keys/failed-keys.js';
import { manualSystem } from '../support/manual-system.js';

describe('Failed keys', () => {
  it('must wait from the eleventh failure of an address in a minute', () => {
    const system = manualSystem();
    const failures = failedKeys(system);
    for (let count = 0; count < 10; count += 1) expect(failures.failed('10.0.0.1')).to.equal(null);
    system.advance(20_000);
    expect(failures.failed('10.0.0.1')).to.equal(40);
    expect(failures.failed('10.0.0.2')).to.equal(null);
    system.advance(39_500);
    expect(failures.failed('10.0.0.1')).to.equal(1);
    system.advance(500);
    expect(failures.failed('10.0.0.1')).to.equal(null);
  });

  it('are counted for 10,000 addresses at most', () => {
    const failures = failedKeys(manualSystem());
    for (let count = 0; count < 11; count += 1) failures.failed('first');
    expect(failures.failed('first')).to.equal(60);
    for (let address = 0; address < 9_999; address += 1) failures.failed(String(address));
    expect(failures.failed('first')).to.equal(60);
    failures.failed('last');
    expect(failures.failed('first')).to.equal(null);
  });
});
