import { expect } from 'chai';
import { Broadcast } from '../../src/system/async/broadcast.js';

describe('A broadcast', () => {
  it('delivers every item between the beginning and the end of listening', () => {
    const broadcast = new Broadcast<number>();
    const [first, second]: [number[], number[]] = [[], []];
    broadcast.deliver(0);
    const leave = broadcast.listen((item) => first.push(item));
    broadcast.deliver(1);
    broadcast.listen((item) => second.push(item));
    broadcast.deliver(2);
    leave();
    leave();
    broadcast.deliver(3);
    expect({ first, second, size: broadcast.size }).to.deep.equal({ first: [1, 2], second: [2, 3], size: 1 });
  });

  it('delivers in order what a listener broadcasts while it receives an item', () => {
    const broadcast = new Broadcast<number>();
    const received: string[] = [];
    broadcast.listen((item) => {
      received.push(`a${item}`);
      if (item === 1) broadcast.deliver(2);
    });
    broadcast.listen((item) => received.push(`b${item}`));
    broadcast.deliver(1);
    expect(received).to.deep.equal(['a1', 'b1', 'a2', 'b2']);
  });

  it('delivers an item to no listener that is added or removed during its delivery', () => {
    const broadcast = new Broadcast<number>();
    const received: string[] = [];
    let leave = (): void => undefined;
    broadcast.listen((item) => {
      leave();
      broadcast.listen(() => received.push('late'));
      received.push(`a${item}`);
    });
    leave = broadcast.listen((item) => received.push(`b${item}`));
    broadcast.deliver(1);
    expect(received).to.deep.equal(['a1']);
  });
});
