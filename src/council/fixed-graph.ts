/** The built-in council as data: a frozen graph like any blueprint's. */
import type { Graph, GraphNode } from '../generated/schemas.js';
import type { NodeDefaults } from '../graph/limits.js';

/** Master drafts, critic scores and routes, writer polishes. */
export function fixedGraph(defaults: NodeDefaults): Graph {
  const member = (id: string, label: string, systemPrompt: string): GraphNode => ({
    id,
    label,
    role: 'agent',
    systemPrompt,
    tools: { webSearch: false, pdfReader: false },
    countsIteration: true,
    ...defaults,
  });
  return {
    entry: 'master_agent',
    nodes: [
      member('master_agent', 'Master', MASTER_PROMPT),
      { ...member('critic_agent', 'Critic', CRITIC_PROMPT), role: 'critic', countsIteration: false },
      { ...member('writer_agent', 'Writer', WRITER_PROMPT), countsIteration: false },
    ],
    edges: [
      { id: 'draft', source: 'master_agent', target: 'critic_agent', condition: null },
      { id: 'rework', source: 'critic_agent', target: 'master_agent', condition: 'rework' },
      { id: 'approve', source: 'critic_agent', target: 'writer_agent', condition: 'approve' },
    ],
  };
}

const MASTER_PROMPT =
  'You are the master agent of a council. Write a complete draft on the topic. When there is a draft with feedback, ' +
  'rewrite it so that every point of the feedback is met. Answer with the draft alone.';

const CRITIC_PROMPT =
  'You are the critic of a council. Judge how well the draft serves the topic: substance, structure, accuracy, ' +
  'clarity. A draft you would publish as it stands earns 8 or more. Name the changes that would raise the score.';

const WRITER_PROMPT =
  'You are the writer of a council. Polish the approved draft: language, rhythm, consistency. Keep its content. ' +
  'Answer with the final text alone.';
