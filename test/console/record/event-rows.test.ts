import { expect } from 'chai';
import type { RunEvent } from '../../../src/client/run-events.js';
import { eventRows } from '../../../src/console/record/event-rows.js';

const event = (type: string, data: object): object => ({ type, data });
const member = (step: number, panelStep = 1): object => ({ node: 'ask', step, panelStep, member: `m${step}` });
const EVENTS = JSON.parse(
  JSON.stringify([
    event('RunStarted', {}),
    event('NodeStarted', member(1)),
    event('NodeStarted', member(2)),
    event('ToolCalled', { node: 'ask', step: 1 }),
    event('NodeCompleted', member(1)),
    event('NodeCompleted', member(2)),
    event('PanelClosed', { node: 'ask', panelStep: 1 }),
    event('NodeStarted', { node: 'write', step: 3 }),
    event('NodeStarted', { ...member(4, 4), node: 'jury' }),
  ]),
) as readonly RunEvent[];

describe('The rows of the list of events', () => {
  const rowsOf = (shown: number, opened: ReadonlyMap<number, boolean> = new Map()): readonly string[] =>
    eventRows(EVENTS, EVENTS.length, { opened: (seq) => opened.get(seq), shown }).map(({ seq, fold }) =>
      fold === null ? String(seq) : `${seq}-${fold.last} ${fold.node}${fold.isOpen ? ' open' : ''}`,
    );

  it('fold the events of a panel, with the calls of its members, and no single event', () => {
    expect(rowsOf(0)).to.deep.equal(['0', '1-6 ask', '7', '8']);
  });

  it('open the fold of the event shown, unless the user has closed it, and each that the user opens', () => {
    const open = ['0', '1-6 ask open', '1', '2', '3', '4', '5', '6', '7', '8'];
    expect(rowsOf(4)).to.deep.equal(open);
    expect(rowsOf(4, new Map([[1, false]]))).to.deep.equal(['0', '1-6 ask', '7', '8']);
    expect(rowsOf(8, new Map([[1, true]]))).to.deep.equal(open);
  });
});
