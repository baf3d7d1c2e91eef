import { expect } from 'chai';
import type { StateValue } from 'xstate';
import { createActor, createMachine } from 'xstate';
import { chartDiagram } from '../../src/audit/diagrams.js';
import { councilChart, runChart } from '../../src/audit/chart.js';
import { mermaidText } from '../../src/audit/diagrams.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import type { ChartConfig, Graph, GraphNode } from '../../src/generated/schemas.js';
import { schemaCheck } from '../support/schema-check.js';
import type { RunEvent } from '../../src/run/events.js';
import { compileChart } from '../../src/run/chart/machine.js';
import { stateValueOf } from '../../src/audit/chart.js';
import { graphOf } from '../support/given.js';
import { goldenHistories } from '../support/golden-histories.js';
import { foldNext } from '../../src/run/stream.js';
import type { RunState } from '../../src/run/state.js';
import { hostileTexts } from '../support/hostile-texts.js';

const isChart = schemaCheck('chart.json');
const FIXED = fixedGraph({ timeoutMs: 1_000, maxAttempts: 1 });

function stateAfter(events: readonly RunEvent[]): RunState {
  const [first] = events;
  const runId = first?.type === 'RunRequested' ? first.data.runId : '';
  let run: RunState | null = null;
  for (const event of events) run = foldNext(runId, run, event);
  if (run === null) throw new Error('There are no events');
  return run;
}

const diagramAfter = (events: readonly RunEvent[]): string => {
  const run = stateAfter(events);
  return chartDiagram(runChart(run), run.plan.graph);
};

/** The active nodes in a diagram. */
const markedIn = (diagram: string): readonly string[] =>
  [...diagram.matchAll(/"▶ (.*)" as/g)].map(([, label]) => label ?? '');

/** Labels with only safe characters: letters, digits, spaces and complete entity codes. */
const LABEL = '(?:[\\p{L}\\p{N} …]|#\\d+;)';

describe('Chart', () => {
  for (const [name, events] of goldenHistories()) {
    it(`is accepted by createMachine, which then reaches the states of the run: ${name}`, () => {
      const { graph } = stateAfter(events.slice(0, 1)).plan;
      const chart = compileChart(graph);
      const config: unknown = JSON.parse(JSON.stringify(runChart(stateAfter(events))));
      if (!isChart(config)) throw new Error(JSON.stringify(isChart.errors));
      const actor = createActor(createMachine(config)).start();
      let snapshot = chart.first(events[0]);
      for (const event of events.slice(1)) {
        const { type } = chart.eventOf(event);
        actor.send({ type });
        snapshot = chart.next(snapshot, event);
        expect(actor.getSnapshot().value, `after ${event.seq}`).to.deep.equal(snapshot.value);
        expect(stateValueOf(snapshot.context.run, chart), `after ${event.seq}`).to.deep.equal(snapshot.value);
      }
    });
  }

  it('contains the value that resolves to the current state, and tags that state', () => {
    const events = goldenHistories().get('branches') ?? [];
    const config = runChart(stateAfter(events.slice(0, 8)));
    expect(config.meta).to.include({ seq: 7 });
    const machine = createMachine(JSON.parse(JSON.stringify(config)) as ChartConfig);
    const resolved = machine.resolveState({ value: config.meta.value as StateValue });
    expect(resolved.matches({ running: { n1: 'active', n2: 'idle' } })).to.equal(true);
    expect([...resolved.tags]).to.deep.equal(['active']);
    expect(config.states['running']?.states?.['n1']).to.deep.include({ tags: ['active'], description: 'Left' });
    expect(config.states['running']?.states?.['n2']).not.to.have.property('tags');
  });

  it('draws the machine and the edges of its graph', () => {
    const chart = councilChart(FIXED, { blueprint_id: 'x', version: 1 });
    expect(chartDiagram(chart, FIXED).split('\n')).to.deep.equal([
      'stateDiagram-v2',
      '  [*] --> pending',
      '  state "pending" as pending',
      '  state "running" as running {',
      '    state "Master" as n0',
      '    state "Critic" as n1',
      '    state "Writer" as n2',
      '    [*] --> n0',
      '    n0 --> n1',
      '    n1 --> n0 : rework',
      '    n1 --> n2 : approve',
      '    n2 --> [*]',
      '  }',
      '  state "paused" as paused {',
      '    state "waiting" as waiting',
      '    state "decided" as decided',
      '    [*] --> waiting',
      '    waiting --> decided : GateDecided',
      '  }',
      '  state "completed" as completed',
      '  state "failed" as failed',
      '  pending --> running : RunStarted',
      '  pending --> failed : RunFailed',
      '  running --> paused : RunPaused',
      '  running --> completed : RunCompleted',
      '  running --> failed : RunFailed',
      '  paused --> failed : RunFailed',
      '  paused --> running : RunResumed',
      '  completed --> [*]',
      '  failed --> [*]',
      '',
    ]);
  });

  it('says which nodes are panels, ranks, judges and juries, and how many members they have', () => {
    const members = ['a', 'b', 'c'].map((id) => ({ id, label: id }));
    const plain = graphOf('p -> r; r -> own; own -> j; j -> jury; jury -> critic');
    const kinds: Readonly<Record<string, Partial<GraphNode>>> = {
      p: { role: 'panel', members },
      r: { role: 'rank' },
      own: { role: 'rank', members: members.slice(1) },
      j: { role: 'judge' },
      jury: { role: 'critic', members },
      critic: { role: 'critic' },
    };
    const graph = { ...plain, nodes: plain.nodes.map((node) => ({ ...node, ...kinds[node.id] })) };
    const chart = councilChart(graph, { blueprint_id: 'x', version: 1 });
    expect(chart.states['running']?.states?.['n0']?.meta).to.deep.equal({ node: 'p', role: 'panel', members: 3 });
    expect(isChart(chart), JSON.stringify(isChart.errors)).to.equal(true);
    const text = chartDiagram(chart, graph).replaceAll(/#(40|41);/g, (_, code) => String.fromCodePoint(Number(code)));
    const named = [...text.matchAll(/ {4}state "(.*)" as n\d/g)].map(([, name]) => name);
    expect(named).to.deep.equal([
      ...['P (panel of 3)', 'R (rank)', 'Own (rank of 2)', 'J (judge)', 'Jury (jury of 3)', 'Critic'],
    ]);
  });

  it('marks the current state in the diagram after each event', () => {
    const events = goldenHistories().get('fixed-graph') ?? [];
    const marks = events.map((_, seq) => markedIn(diagramAfter(events.slice(0, seq + 1))).join(' '));
    expect(marks).to.deep.equal([
      ...['pending', 'pending', 'running', 'running Master', 'running', 'running Critic', 'running'],
      ...['running Master', 'running', 'running Critic', 'running', 'running Writer', 'running', 'completed'],
    ]);
    const paused = goldenHistories().get('god-reject') ?? [];
    expect(markedIn(diagramAfter(paused.slice(0, 4)))).to.deep.equal(['paused', 'waiting']);
    const branches = goldenHistories().get('branches') ?? [];
    expect(markedIn(diagramAfter(branches.slice(0, 7)))).to.deep.equal(['running', 'Left', 'Right']);
  });

  it('of a graph without nodes has none to draw', () => {
    const empty: Graph = { entry: '', nodes: [], edges: [] };
    const diagram = chartDiagram(councilChart(empty, { blueprint_id: 'x', version: 1 }), empty);
    expect(diagram).to.include('  state "running" as running\n').and.not.include('n0');
  });

  it('encodes labels and conditions so that no parser reads them as syntax', () => {
    const texts = hostileTexts();
    const plain = graphOf(texts.map((_, index) => `a${index} -> a${index + 1}`).join('; '));
    const nodes = plain.nodes.map((node, index) => ({ ...node, label: texts[index] ?? 'last' }));
    const edges = plain.edges.map((edge, index) => ({ ...edge, condition: texts[index] ?? null }));
    const graph = { ...plain, nodes, edges };
    const diagram = chartDiagram(councilChart(graph, { blueprint_id: 'x', version: 1 }), graph);
    const line = new RegExp(
      `^ *(?:stateDiagram-v2|\\}|state "${LABEL}+" as \\w+(?: \\{)?|(?:\\w+|\\[\\*\\]) --> (?:\\w+|\\[\\*\\])(?: : ${LABEL}+)?)?$`,
      'u',
    );
    for (const each of diagram.split('\n')) expect(each).to.match(line);
    expect(diagram).not.to.match(/direction/i);
    expect([...diagram.matchAll(/ as n\d+$/gm)]).to.have.lengthOf(nodes.length);
  });
});

describe('A label', () => {
  it('decodes to the original text, in one line', () => {
    for (const text of hostileTexts()) {
      const decoded = mermaidText(text, 1_000).replace(/#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
      expect(decoded).to.equal(text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim());
    }
  });

  it('is cut between characters when it is long', () => {
    expect(mermaidText('🌳'.repeat(100))).to.equal(`${'#127795;'.repeat(59)}#8230;`);
    expect(mermaidText('x'.repeat(60))).to.equal('x'.repeat(60));
  });
});
