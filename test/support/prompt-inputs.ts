import type { GraphNode } from '../../src/generated/schemas.js';
import type { PromptInput, ModelRequest } from '../../src/models/port.js';
import { renderPrompt } from '../../src/council/prompt.js';
import { ROLES } from '../../src/council/roles.js';
import type { Assignment } from '../../src/run/pending-events.js';

/** A node of a graph with default values for missing fields. */
export function nodeWith(fields: Partial<GraphNode> = {}): GraphNode {
  return {
    id: 'n1',
    label: 'Poet',
    role: 'agent',
    systemPrompt: 'Write verse.',
    tools: { webSearch: false, pdfReader: false },
    countsIteration: true,
    timeoutMs: 1000,
    maxAttempts: 4,
    ...fields,
  };
}

/** The part of a prompt that comes from the run. */
type PromptState = Partial<Pick<PromptInput, 'topic' | 'draft' | 'feedback' | 'answers' | 'ranking' | 'analysis'>>;

/** A prompt input; missing fields are those of a new run about "Trees". */
export function promptInputFor(node: GraphNode, state: PromptState = {}): PromptInput {
  const { label, role, systemPrompt } = node;
  return { label, role, systemPrompt, topic: 'Trees', draft: null, feedback: [], ...state };
}

/** A prompt input with its rendered prompt. */
export function assigned(...[node, state]: Parameters<typeof promptInputFor>): Assignment {
  const promptInput = promptInputFor(node, state);
  return { promptInput, rendered: renderPrompt(promptInput) };
}

/** The model request of a node. */
export function requestFor(node: GraphNode, state: PromptState = {}): ModelRequest {
  const promptInput = promptInputFor(node, state);
  const { model, temperature } = node;
  return {
    ...renderPrompt(promptInput),
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    promptInput,
    answer: ROLES[node.role].answer,
  };
}
