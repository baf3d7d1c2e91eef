import { expect } from 'chai';
import type { RunEvent } from '../../src/client/run-events.js';
import { asItRan } from '../../src/console/record/executions.js';
import type { AsItRan } from '../../src/console/record/executions.js';
import type { Unrolled } from '../../src/console/pages/run/unrolled.js';
import { pageOf, unrolled } from '../../src/console/pages/run/unrolled.js';
import { placesOf, sizeOf, spaceOf } from '../../src/console/ui/graph-ways.js';
import { present } from '../../src/system/element.js';
import { history, longHistory, recordOf } from '../support/console-records.js';

describe('The graph of a run as it ran', () => {
  it('shows each execution as a step, joined by what led from one to the next, to the end', () => {
    const { nodes, edges } = drawn(history('fixed-graph'));
    expect(nodes.map(({ label, standing }) => `${label} ${standing}`)).to.deep.equal([
      'Master done',
      'Critic done',
      'Master done',
      'Critic done',
      'Writer done',
      'Completed done',
    ]);
    expect(edges.map(({ source, target, label }) => `${source} - ${target} ${label}`)).to.deep.equal([
      'step 1 - step 2 null',
      'step 2 - step 3 rework',
      'step 3 - step 4 null',
      'step 4 - step 5 approve',
      'step 5 - end null',
    ]);
  });

  it('shows pauses and what was decided there as marks between the steps', () => {
    const events = history('god-approve');
    const { nodes, edges } = drawn(events);
    const pauses = nodes.filter(({ kind, id }) => kind === 'mark' && id.startsWith('pause'));
    expect(pauses).to.have.lengthOf(events.filter(({ type }) => type === 'RunPaused').length);
    for (const { id } of pauses) expect(edges.map(({ source, target }) => [source, target]).flat(), id).to.include(id);
  });

  it('keeps every step where it stands, whatever moment is looked at', () => {
    const events = history('fixed-graph');
    const places = events.map((_, seq) => {
      const { nodes, edges } = drawn(events, seq);
      return [
        ...placesOf(
          nodes.map((node) => ({ ...sizeOf(node), position: null })),
          edges.map(spaceOf),
          'right',
        ).nodes,
      ];
    });
    for (const each of places) expect(each).to.deep.equal(places[0]);
    const shown = drawn(events, 3).nodes.filter(({ isAbsent }) => isAbsent !== true);
    expect(shown.map(({ label, standing }) => `${label} ${standing}`)).to.deep.equal(['Master active']);
  });

  it('does not shove what stands when a step is added', () => {
    const events = history('fixed-graph');
    const first = (until: number) => {
      const { nodes, edges } = drawn(events.slice(0, until));
      return placesOf(
        nodes.map((node) => ({ ...sizeOf(node), position: null })),
        edges.map(spaceOf),
        'right',
      ).nodes.get('step 1');
    };
    expect(first(4)).to.deep.equal(first(events.length));
  });

  it('draws a run of many steps page by page, each reached from the next', () => {
    const events = longHistory(450);
    const record = recordOf(events);
    const ran = present(asItRan(record, record.head, present(events.at(-1), 'event').at), 'run');
    expect(ran.executions.length).to.be.greaterThan(120);
    const last = pageOf(ran.executions.length);
    const seen = new Set<string>();
    for (let page = last; page >= 0; page -= 1) {
      const { nodes, targets } = unrolled(ran, ran, page);
      expect(nodes.length).to.be.lessThan(160);
      for (const { id } of nodes) seen.add(id);
      if (page > 0) expect(targets.get('before')).to.deep.equal({ page: page - 1 });
      if (page < last) expect(targets.get('after')).to.deep.equal({ page: page + 1 });
    }
    for (const { step } of ran.executions) expect(seen.has(`step ${step}`), String(step)).to.equal(true);
  });
});

/** The first page of it, at its head or after an event. */
function drawn(events: readonly RunEvent[], seq = events.length - 1): Unrolled {
  const record = recordOf(events);
  const at = (moment: number): AsItRan => present(asItRan(record, moment, present(events[moment], 'event').at), 'run');
  return unrolled(at(seq), at(record.head), 0);
}
