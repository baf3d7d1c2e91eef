import { batch, signal } from '@preact/signals';
import { expect } from 'chai';
import type { RunEvent } from '../../src/client/run-events.js';
import type { LiveMessage } from '../../src/client/tokens.js';
import { RunStore } from '../../src/console/pages/run/store.js';
import { present } from '../../src/system/element.js';
import { history, longRun, recordOf } from '../support/console-records.js';
import { untilTrue } from '../support/until-true.js';
import { councilOfMinds } from './council-of-minds.js';

describe('The store of a run in the console', () => {
  it('publishes events once per frame, and follows the head', async () => {
    const events = history('fixed-graph');
    const { store, feed, paint, frames } = storeOver();
    const stop = store.start();
    await feed(events.slice(0, 5));
    expect(store.head.value).to.equal(-1);
    expect(frames()).to.equal(1);
    paint();
    expect(store.head.value).to.equal(4);
    await feed(events.slice(5));
    paint();
    expect(store.snapshot.value).to.deep.equal(recordOf(events).snapshotAt(events.length - 1));
    expect(store.isOver.value).to.equal(true);
    stop();
  });

  it('stays at the event in the URL while the run continues', async () => {
    const events = history('fixed-graph');
    const { store, place, feed, paint } = storeOver('at=3');
    store.start();
    await feed(events.slice(0, 6));
    paint();
    const seen = store.snapshot.value;
    expect(seen?.seq).to.equal(3);
    await feed(events.slice(6));
    paint();
    expect(store.snapshot.value).to.equal(seen);
    store.goTo(events.length - 1);
    expect(place.query.value.get('at')).to.equal(null);
    store.goTo(2);
    expect(place.query.value.get('at')).to.equal('2');
    expect(store.trace.value?.end).to.equal(null);
    expect(store.fullTrace.value?.end?.how).to.equal('completed');
  });

  it('shows a draft while it is written, until its node completes', async () => {
    const events = history('fixed-graph');
    const begun = events.findIndex(({ type }) => type === 'NodeStarted');
    const { store, feed, say, paint } = storeOver();
    store.start();
    await feed(events.slice(0, begun + 1));
    await say('The ', 1);
    await say('sea', 1, 4);
    paint();
    expect(store.tokens.value.map(({ text }) => text)).to.deep.equal(['The sea']);
    await say('Thought over: ', 2);
    paint();
    expect(store.tokens.value.map(({ text }) => text)).to.deep.equal(['Thought over: ']);
    await feed(events.slice(begun + 1, begun + 2));
    await say('too late', 2);
    paint();
    expect(store.tokens.value).to.deep.equal([]);
  });

  it('keeps the drafts of members that write at once apart, until each has answered or the panel has closed', async () => {
    const events = councilOfMinds().events;
    const started = events.findLastIndex(({ type, data }) => type === 'NodeStarted' && data.node === 'panel');
    const { store, feed, sayOf, paint } = storeOver();
    store.start();
    const written = (): readonly string[] => store.tokens.value.map(({ member, text }) => `${member}: ${text}`);
    await feed(events.slice(0, 8));
    await sayOf('north', 1, 'It is ');
    await sayOf('west', 4, 'I am ');
    await sayOf('north', 1, 'deep', 6);
    await sayOf('west', 4, 'slow', 5);
    paint();
    expect(written()).to.deep.equal(['north: It is deep', 'west: I am slow']);
    expect(store.labelOf('panel', 'west')).to.equal('West of Panel');
    await feed(events.slice(8, started + 1));
    paint();
    expect(written()).to.deep.equal(['west: I am slow']);
    await feed(events.slice(started + 1, 16));
    await sayOf('west', 4, ' and late', 9);
    paint();
    expect(events[15]?.type).to.equal('PanelClosed');
    expect(written()).to.deep.equal([]);
  });

  it('knows how many characters of a draft it missed', async () => {
    const events = history('fixed-graph');
    const { store, feed, say, paint } = storeOver();
    store.start();
    await feed(events.slice(0, events.findIndex(({ type }) => type === 'NodeStarted') + 1));
    const written = (): readonly (string | number)[] => store.tokens.value.flatMap(({ from, text }) => [from, text]);
    await say('keeps ', 1, 8);
    await say('what ', 1, 14);
    paint();
    expect(written()).to.deep.equal([8, 'keeps what ']);
    await say('takes', 1, 30);
    paint();
    expect(written()).to.deep.equal([30, 'takes']);
  });
});

describe('The events of a run in the console', () => {
  it('can be selected one by one and by draft', async () => {
    const events = history('fixed-graph');
    const { store, feed, paint } = storeOver('at=0');
    store.start();
    await feed(events);
    paint();
    const drafts = store.landmarks.value.filter(({ kind }) => kind === 'draft').map(({ seq }) => seq);
    store.step(1);
    expect(store.shown.value).to.equal(1);
    for (const seq of drafts) {
      store.stride(1);
      expect(store.shown.value).to.equal(seq);
    }
    store.stride(1);
    expect(store.at.value).to.equal(null);
    store.stride(-1);
    expect(store.shown.value).to.equal(drafts.at(-1));
    store.goTo(drafts[0] ?? 0);
    store.stride(-1);
    expect(store.shown.value).to.equal(0);
  });

  it('have a landmark where a panel, rank or jury closes, and none for its members', async () => {
    const { events } = councilOfMinds();
    const { store, feed, paint } = storeOver();
    store.start();
    await feed(events);
    paint();
    const kinds = store.landmarks.value.filter(({ kind }) => kind === 'draft' || kind === 'score');
    expect(kinds.map(({ seq, kind, score }) => [events[seq]?.type, kind, score])).to.deep.equal([
      ['PanelClosed', 'draft', null],
      ['PanelClosed', 'draft', null],
      ['NodeCompleted', 'draft', null],
      ['PanelClosed', 'score', 6],
      ['NodeCompleted', 'draft', null],
      ['PanelClosed', 'score', 9],
      ['NodeCompleted', 'draft', null],
    ]);
  });

  it('know the previous draft', async () => {
    const events = longRun(60);
    const { store, feed, paint } = storeOver();
    store.start();
    await feed(events);
    paint();
    const [first, second] = store.landmarks.value.filter(({ kind }) => kind === 'draft');
    store.goTo(first?.seq ?? 0);
    expect(store.draftBefore.value).to.equal(null);
    store.goTo((second?.seq ?? 0) + 1);
    expect(store.draftBefore.value?.draft).to.contain('Draft 1');
    expect(store.snapshot.value?.draft).to.contain('Draft 2');
  });
});

/** A store with a source that the test controls, and a separate URL. */
function storeOver(query = '') {
  const place = placeAt(query);
  const events = pushed<RunEvent>();
  const messages = pushed<LiveMessage>();
  const asked: number[] = [];
  let shows: (() => void)[] = [];
  const store = new RunStore({
    source: {
      id: 'run',
      isLive: true,
      events(from, signal) {
        asked.push(from);
        return events.read(signal);
      },
      tokens: (signal) => messages.read(signal),
    },
    place,
    clock: signal(Date.parse('2026-01-01T01:00:00.000Z')),
    frame: (show) => void shows.push(show),
  });
  return {
    store,
    place,
    asked: () => asked,
    feed: events.push,
    fail: events.fail,
    frames: () => shows.length,
    say: (text: string, turn: number, offset = 0) =>
      messages.push([{ event: 'token', run_id: 'run', node: 'agent_1', step: 1, attempt: 1, turn, offset, text }]),
    sayOf: (member: string, step: number, text: string, offset = 0) =>
      messages.push([
        {
          event: 'token',
          run_id: 'run',
          node: 'panel',
          member,
          step,
          attempt: 1,
          turn: 1,
          offset,
          text,
        },
      ]),
    paint() {
      const due = shows;
      shows = [];
      for (const show of due) show();
    },
  };
}

function placeAt(text: string) {
  const query = signal(new URLSearchParams(text));
  return {
    query,
    setQuery(changes: Readonly<Record<string, string | number | null>>) {
      const next = new URLSearchParams(query.value);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) next.delete(name);
        else next.set(name, String(value));
      }
      batch(() => (query.value = next));
    },
  };
}

/** An async queue: `push` resolves when the value was read. */
function pushed<T>() {
  const waiting: T[] = [];
  let fault: Error | null = null;
  let wake = (): void => undefined;
  return {
    async push(items: readonly T[]) {
      waiting.push(...items);
      wake();
      await untilTrue(() => waiting.length === 0);
      await new Promise(setImmediate);
    },
    async fail(error: Error) {
      fault = error;
      wake();
      await new Promise(setImmediate);
    },
    async *read(signal: AbortSignal): AsyncGenerator<T, void> {
      signal.addEventListener('abort', () => wake());
      while (!signal.aborted) {
        while (waiting.length > 0) yield present(waiting.shift(), 'what waits');
        if (fault !== null) throw fault;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
