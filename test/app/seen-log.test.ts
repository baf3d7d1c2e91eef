import { expect } from 'chai';
import { SeenLog } from '../../src/app/seen-log.js';
import type { Position, RecordedEvent } from '../../src/eventlog/port.js';
import { fieldOf } from '../../src/system/untrusted.js';

describe('What a folder has seen of a log on a server', () => {
  const event = (stream: string, position: string): RecordedEvent => ({
    stream,
    revision: 0,
    id: `id-${position}`,
    type: 'Any',
    data: '{}',
    metadata: {},
    position: position as Position,
  });

  it('does not change by the events of another log that takes its place', () => {
    let nowMs = 0;
    let text = '';
    const seen = new SeenLog({
      file: { read: () => null, write: (written) => void (text = written), remove: () => undefined },
      seen: { server: { identity: 'log', last: null }, hadKeys: true },
      isOnServer: true,
      instanceId: 'own',
      keys: { isOpen: true, onChange: () => () => undefined },
      system: { monotonicMs: () => nowMs },
    });
    const lastAfter = (...events: readonly RecordedEvent[]): unknown => {
      nowMs += 5_000;
      for (const each of events) seen.onEventFolded(each);
      return fieldOf(fieldOf(fieldOf(JSON.parse(text), 'server'), 'last'), 'position');
    };
    seen.start();
    expect(lastAfter(event('run-1', '5'))).to.equal(undefined);
    expect(lastAfter(event('instance-other', '6'))).to.equal(undefined);
    expect(lastAfter(event('instance-own', '7'))).to.equal('5');
    // Of an older copy, which has grown less or more than what it lacks.
    expect(lastAfter(event('run-2', '3'), event('run-2', '8'))).to.equal('5');
    expect(lastAfter(event('run-2', '4'), event('instance-own', '9'))).to.equal('8');
  });
});
