/** The graphs of the runs that a plan may draw. */
import { fixedGraph } from '../../src/council/fixed-graph.js';
import type { FrozenCouncil, Graph, GraphMember, GraphNode } from '../../src/generated/schemas.js';
import { graphOf, graphWith } from '../support/given.js';

const NODE = { timeoutMs: 1_500, maxAttempts: 3 };
const QUORUM = { by: ['ann', 'bob', 'cat'], quorum: 2 };
/** The built-in council without its prompts, to keep records short. */
const FIXED = fixedGraph(NODE);
const LINE = 'one -> two; two -> three';

export const BRIEF_GRAPHS: Readonly<Record<string, Graph>> = {
  pair: graphOf('one -> two', NODE),
  'brief-quorum': { ...graphOf('only', NODE), approvals: { ...QUORUM, deadline: { after_ms: 800, then: 'approve' } } },
  'brief-rejecting': {
    ...graphOf('only', NODE),
    approvals: { ...QUORUM, deadline: { after_ms: 500, then: 'reject' } },
  },
  'brief-escalating': {
    ...graphOf('only', NODE),
    approvals: { ...QUORUM, deadline: { after_ms: 400, then: { escalate: ['cat', 'dan'] } } },
  },
};

/** Graphs without panels. */
export const PLAIN_GRAPHS: Readonly<Record<string, Graph>> = {
  fixed: { ...FIXED, nodes: FIXED.nodes.map((node) => ({ ...node, systemPrompt: '' })) },
  one: graphOf('only', NODE),
  line: graphOf(LINE, NODE),
  fork: graphOf('plan -> left, right; left, right -> join', NODE),
  critic: graphOf('write -> judge?; judge -approve-> polish; judge -rework-> write', NODE),
  quorum: { ...graphOf(LINE, NODE), approvals: { ...QUORUM, deadline: { after_ms: 2_500, then: 'approve' } } },
  rejecting: { ...graphOf(LINE, NODE), approvals: { ...QUORUM, deadline: { after_ms: 1_500, then: 'reject' } } },
  escalating: {
    ...graphOf(LINE, NODE),
    approvals: { ...QUORUM, deadline: { after_ms: 1_000, then: { escalate: ['cat', 'dan'] } } },
  },
};

/** The models of members. Each seat of a panel has its own, so that a call shows whose it is. */
const MINDS = ['mind-1', 'mind-2', 'mind-3', 'mind-4'] as const;
const SPARES = ['spare-1', 'spare-2', 'spare-3', 'spare-4'] as const;
/** The model of nodes without one. */
export const DEFAULT_MODEL = 'simulated-1';
export const MODELS = [DEFAULT_MODEL, ...MINDS, ...SPARES] as const;
/** The models that a fault may meet alone. */
export const SINGLE_MINDS = [MINDS[0], MINDS[1], MINDS[2], SPARES[0]] as const;
/** What no prompt may hold: the labels and ids of a panel's members. */
export const MEMBER_NAMES = /Seat \d|\b[st]\d\b/u;
/** The models by which answers present their authors: no prompt of a rank or judge may hold one. */
export const MODEL_NAMES = /(?:mind|spare)-\d/u;

/** Members from one number to another. Ids with `s` or `t` are those of a panel, and appear in no prompt. */
function members(prefix: string, from: number, to: number, hasFallbacks = false): GraphMember[] {
  return MINDS.slice(from - 1, to).map((model, index) => {
    const number = from + index;
    const fallback = SPARES[number - 1];
    return {
      id: `${prefix}${number}`,
      label: `${prefix === 's' || prefix === 't' ? 'Seat' : 'Juror'} ${number}`,
      model,
      ...(hasFallbacks && fallback !== undefined && { fallbacks: [fallback] }),
    };
  });
}

type Node = Partial<GraphNode> & { readonly id: string };

function panel(id: string, seats: readonly GraphMember[], quorum: number, graceMs: number): Node {
  return { ...NODE, id, role: 'panel', members: [...seats], quorum, graceMs };
}

function jury(id: string, quorum: number, graceMs: number, aggregate: GraphNode['aggregate'] = 'median'): Node {
  return { ...NODE, id, role: 'critic', members: members('j', 1, 3), quorum, graceMs, aggregate };
}

const rank = (id: string, fields: Partial<GraphNode> = {}): Node => {
  return { ...NODE, id, role: 'rank', countsIteration: false, ...fields };
};
const judge: Node = { ...NODE, id: 'judge', role: 'judge', countsIteration: false };
const agent = (id: string): Node => ({ ...NODE, id });

/** A graph of nodes and of edges as `from -> to` or `from -condition-> to`. */
function council(nodes: readonly Node[], ...links: readonly string[]): Graph {
  const edges = links.map((link, index) => {
    const [, source = '', condition = null, target = ''] = /^(\w+) -(?:(.*)-)?> (\w+)$/.exec(link) ?? [];
    return { id: `e${index}`, source, target, condition };
  });
  return graphWith(nodes, edges);
}

/** One model twice. Only the temperature tells whose a call is. */
const SAME_MINDS = [1, 2].map((number): GraphMember => {
  return { id: `s${number}`, label: `Seat ${number}`, model: MINDS[0], temperature: number / 2 };
});
const three = members('s', 1, 3);
const four = members('s', 1, 4, true);

/** Graphs with panels, ranks, judges and juries. */
export const PANEL_GRAPHS: Readonly<Record<string, Graph>> = {
  panel: council([panel('ask', three, 2, 60), agent('write')], 'ask -> write'),
  fusion: council([panel('ask', four, 3, 300), judge, agent('write')], 'ask -> judge', 'judge -> write'),
  review: council(
    [panel('ask', members('s', 1, 3, true), 3, 500), rank('rank', { keep: 2 }), agent('write')],
    'ask -> rank',
    'rank -> write',
  ),
  chosen: council(
    [panel('ask', four, 2, 100), rank('rank', { keep: 1, members: members('r', 1, 3) }), judge, agent('write')],
    ...['ask -> rank', 'rank -agreement >= 0.4-> judge', 'rank -> write', 'judge -> write'],
  ),
  jury: council(
    [agent('write'), jury('critic', 2, 50), agent('polish')],
    ...['write -> critic', 'critic -approve-> polish', 'critic -rework-> write'],
  ),
  escalate: council(
    [agent('write'), jury('critic', 3, 0, 'mean'), panel('ask', three, 1, 0), agent('polish')],
    ...['write -> critic', 'critic -spread > 3-> ask', 'critic -> polish', 'ask -> polish'],
  ),
  same: council([panel('ask', SAME_MINDS, 1, 150), judge], 'ask -> judge'),
  parallel: council(
    [agent('plan'), panel('left', members('s', 1, 2), 1, 80), panel('right', members('t', 3, 4), 2, 0), agent('join')],
    ...['plan -> left', 'plan -> right', 'left -> join', 'right -> join'],
  ),
  lowest: council([panel('ask', three, 1, 1_000), jury('critic', 1, 200, 'lowest')], 'ask -> critic'),
  ruled: {
    ...council([panel('ask', members('s', 1, 2, true), 1, 100), rank('rank')], 'ask -> rank'),
    approvals: { ...QUORUM, deadline: { after_ms: 600, then: 'approve' } },
  },
};

/** The label of nodes whose drafts have two lines. */
export const LISTING = 'list';
const list: Node = { ...agent('plan'), label: LISTING };
const inner = (graph: Graph): FrozenCouncil => ({ id: 'inner', name: 'Inner', version: 1, graph });
/** A node with councils; the topics of their runs differ. */
const councils = (id: string, graph: Graph, fields: Partial<GraphNode> = {}): Node => {
  const topic = `{{topic}}/${id}{{index}}`;
  return { ...NODE, id, role: 'council', council: inner(graph), topic, onError: 'fail', ...fields };
};
const lines = { forEach: 'lines', maxParallel: 2 } as const;

/** Graphs with councils in councils. */
export const COUNCIL_GRAPHS: Readonly<Record<string, Graph>> = {
  once: council(
    [agent('write'), councils('part', graphOf('only', NODE)), agent('end')],
    'write -> part',
    'part -> end',
  ),
  each: council([list, councils('part', graphOf('one -> two', NODE), lines)], 'plan -> part'),
  queue: council(
    [list, councils('part', graphOf('only', NODE), { ...lines, maxParallel: 1, onError: 'skip' }), agent('end')],
    ...['plan -> part', 'part -> end'],
  ),
  beside: council(
    [list, councils('left', graphOf('only', NODE), lines), agent('right'), agent('join')],
    ...['plan -> left', 'plan -> right', 'left -> join', 'right -> join'],
  ),
  nested: council(
    [list, councils('part', council([list, councils('deep', graphOf('only', NODE), lines)], 'plan -> deep'), lines)],
    'plan -> part',
  ),
};

export const GRAPHS: Readonly<Record<string, Graph>> = {
  ...PLAIN_GRAPHS,
  ...BRIEF_GRAPHS,
  ...PANEL_GRAPHS,
  ...COUNCIL_GRAPHS,
};
