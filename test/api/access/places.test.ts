import { expect } from 'chai';
import { placesFor } from '../../../src/api/access/places.js';

/** How many places a key gets one after the other. */
function takenBy(places: ReturnType<typeof placesFor>, actor: string | null): number {
  let taken = 0;
  while (places.take(actor) !== null) taken += 1;
  return taken;
}

describe('Places for open streams and sockets', () => {
  it('go to one key up to the half, and are left for others whichever keys came first', () => {
    const places = placesFor(100);
    expect(['a', 'b', 'c', 'd', 'e'].map((actor) => takenBy(places, actor))).to.deep.equal([50, 25, 13, 6, 3]);
    expect(takenBy(places, 'last')).to.be.at.least(1);
  });

  it('can be taken again once they are freed, and are freed once', () => {
    const places = placesFor(2);
    const free = places.take('a');
    expect(places.take('a')).to.equal(null);
    free?.();
    free?.();
    expect([takenBy(places, 'a'), takenBy(places, 'b'), takenBy(places, 'c')]).to.deep.equal([1, 1, 0]);
  });

  it('are all shared by callers without a key', () => {
    expect(takenBy(placesFor(10), null)).to.equal(10);
  });
});
