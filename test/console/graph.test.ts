import { expect } from 'chai';
import type { RunEvent } from '../../src/client/client.js';
import { CouncilClient } from '../../src/client/client.js';
import { traceAt } from '../../src/console/record/executions.js';
import type { ExecutionTrace } from '../../src/console/record/executions.js';
import type { ExecutionGraph } from '../../src/console/pages/run/execution-graph.js';
import { pageOf, executionGraph } from '../../src/console/pages/run/execution-graph.js';
import { layoutGraph } from '../../src/console/record/graph-layout.js';
import { initialView, fitView } from '../../src/console/ui/camera-sight.js';
import { placesOf, sizeOf, spaceOf } from '../../src/console/ui/graph-geometry.js';
import type { LanguageModel } from '../../src/models/port.js';
import { present } from '../../src/system/element.js';
import { describeInBrowser } from '../support/console-browser.js';
import { history, longHistory, recordOf } from '../support/console-records.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, currentModel, scriptedModel } from '../support/scripted-model.js';

describe('The graph of executed steps', () => {
  it('shows each execution as a step, with edges to the next step and the end', () => {
    const { nodes, edges } = drawn(history('fixed-graph'));
    expect(nodes.map(({ label, state }) => `${label} ${state}`)).to.deep.equal([
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

  it('shows pauses with their decisions between the steps', () => {
    const events = history('god-approve');
    const { nodes, edges } = drawn(events);
    const pauses = nodes.filter(({ kind, id }) => kind === 'mark' && id.startsWith('pause'));
    expect(pauses).to.have.lengthOf(events.filter(({ type }) => type === 'RunPaused').length);
    for (const { id } of pauses) expect(edges.map(({ source, target }) => [source, target]).flat(), id).to.include(id);
  });

  it('keeps the positions of all steps at every event', () => {
    const events = history('fixed-graph');
    const places = events.map((_, seq) => {
      const { nodes, edges } = drawn(events, seq);
      return [
        ...placesOf(
          nodes.map((node) => ({ ...sizeOf(node), position: null })),
          edges.map(spaceOf),
          { direction: 'right', layoutGraph },
        ).nodes,
      ];
    });
    for (const each of places) expect(each).to.deep.equal(places[0]);
    const shown = drawn(events, 3).nodes.filter(({ isAbsent }) => isAbsent !== true);
    expect(shown.map(({ label, state }) => `${label} ${state}`)).to.deep.equal(['Master active']);
  });

  it('keeps the first step in place when steps are added', () => {
    const events = history('fixed-graph');
    const first = (until: number) => {
      const { nodes, edges } = drawn(events.slice(0, until));
      return placesOf(
        nodes.map((node) => ({ ...sizeOf(node), position: null })),
        edges.map(spaceOf),
        { direction: 'right', layoutGraph },
      ).nodes.get('step 1');
    };
    expect(first(4)).to.deep.equal(first(events.length));
  });

  it('shows a long run in pages that link to each other', () => {
    const events = longHistory(450);
    const record = recordOf(events);
    const ran = present(traceAt(record, record.head, present(events.at(-1), 'event').at), 'run');
    expect(ran.executions.length).to.be.greaterThan(120);
    const last = pageOf(ran.executions.length);
    const seen = new Set<string>();
    for (let page = last; page >= 0; page -= 1) {
      const { nodes, targets } = executionGraph(ran, ran, page);
      expect(nodes.length).to.be.lessThan(160);
      for (const { id } of nodes) seen.add(id);
      if (page > 0) expect(targets.get('before')).to.deep.equal({ page: page - 1 });
      if (page < last) expect(targets.get('after')).to.deep.equal({ page: page + 1 });
    }
    for (const { step } of ran.executions) expect(seen.has(`step ${step}`), String(step)).to.equal(true);
  });
});

describe('The initial view of a graph', () => {
  const phone = { width: 336, height: 360 };
  const part = { x: 900, y: 0, width: 200, height: 56 };

  it('shows a small graph completely, in the middle', () => {
    const drawing = { x: -20, y: 0, width: 200, height: 100 };
    expect(initialView(drawing, phone, { part, grows: false })).to.deep.equal({ x: 88, y: 118, scale: 1 });
  });

  it('shows all of a graph that is a little larger than the window', () => {
    const desk = { width: 1_230, height: 494 };
    const tall = { x: 0, y: 0, width: 200, height: 646 };
    expect(initialView(tall, desk, { part, grows: false })).to.deep.equal(fitView(tall, desk));
    const wide = { x: 0, y: 0, width: 1_600, height: 200 };
    expect(initialView(wide, desk, { part, grows: false })).to.deep.equal(fitView(wide, desk));
    expect(initialView({ ...wide, width: 2_000 }, desk, { part, grows: false }).scale).to.equal(0.8);
  });

  it('shows the active part of a graph at a readable size on a phone too small for all of it', () => {
    const drawing = { x: 0, y: 0, width: 2_000, height: 900 };
    const { x, y, scale } = initialView(drawing, phone, { part, grows: false });
    expect(scale).to.equal(0.8);
    expect(x + 1_000 * scale, 'the middle of the part').to.equal(phone.width / 2);
    expect(y, 'no gap above').to.equal(28);
    expect(fitView(drawing, phone).scale, 'all of it, when asked for').to.be.lessThan(0.2);
  });
});

describeInBrowser('The graph on the page of a run', (browser) => {
  let model: LanguageModel;
  let service: RunningService;
  let council: CouncilClient;

  before(async () => {
    service = await startService({ model: currentModel(() => model) });
    council = new CouncilClient({ url: service.url });
  });
  after(() => service.stop());

  for (const [view, last] of [
    ['is', 'Writer'],
    ['ran', 'Completed'],
  ] as const) {
    it(`keeps the camera while the run continues, in the view ${view}`, async () => {
      const held = scriptedModel(() => 'hold');
      model = held;
      const run = await council.runs.start({ topic: 'The sea' });
      await held.called(1);
      const page = await browser.open(`${service.url}/console/runs/${run.id}?view=${view}`);
      const graph = page.getByRole('group', { name: view === 'is' ? 'Council' : 'Execution' });
      const master = graph.getByRole('button', { name: 'Master' }).first();
      /** The position of a node in the viewport of the graph. */
      const place = async () => {
        const [outer, inner] = [await graph.boundingBox(), await master.boundingBox()];
        return [
          inner?.width,
          present(inner, 'node').x - present(outer, 'graph').x,
          present(inner, 'node').y - present(outer, 'graph').y,
        ];
      };
      await master.getByText('active').waitFor({ state: 'attached' });
      const before = present(await master.boundingBox(), 'place');
      await page.mouse.move(before.x + 300, before.y + 20);
      await page.mouse.down();
      await page.mouse.move(before.x + 220, before.y + 60, { steps: 4 });
      await page.mouse.up();
      await page.getByRole('button', { name: 'Zoom in' }).click();
      const put = await place();
      expect(put[0]).to.be.greaterThan(before.width);

      for (const [calls, text] of [
        [2, 'Draft 1'],
        [3, '{"score": 5, "feedback": "More"}'],
        [4, 'Draft 2'],
        [5, '{"score": 9, "feedback": "Good"}'],
      ] as const) {
        present(held.held[0], 'call').release(text);
        await held.called(calls);
      }
      present(held.held[0], 'call').release('The end');
      await graph.getByRole('button', { name: last }).getByText('done').waitFor({ state: 'attached' });
      expect(await place()).to.deep.equal(put);
      await page.getByRole('button', { name: 'Fit the graph into view' }).click();
      expect(await place()).not.to.deep.equal(put);
    });
  }

  it('moves between nodes with arrows, and opens a step', async () => {
    model = scriptedModel(councilScript([9]));
    const run = await council.runs.start({ topic: 'The sea' });
    await run.result();
    const page = await browser.open(`${service.url}/console/runs/${run.id}?tab=graph`);
    await page.getByRole('button', { name: 'Master' }).first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('Scored 9 of 10').waitFor();
    expect(await page.getByRole('button', { name: 'Critic', pressed: true }).count()).to.equal(1);
    await page.getByText('as sent').waitFor();
    await page.getByText('User prompt').click();
    await page.getByRole('region', { name: 'Prompt' }).getByText('</topic>').last().waitFor();
    const edges = page.getByRole('list', { name: 'Edges' });
    expect(await edges.getByText('Critic to Writer, if approve, used once').count()).to.equal(1);
  });
});

/** The first page of the graph of a run, at its head or after an event. */
function drawn(events: readonly RunEvent[], seq = events.length - 1): ExecutionGraph {
  const record = recordOf(events);
  const at = (moment: number): ExecutionTrace =>
    present(traceAt(record, moment, present(events[moment], 'event').at), 'run');
  return executionGraph(at(seq), at(record.head), 0);
}
