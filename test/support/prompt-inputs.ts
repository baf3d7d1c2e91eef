import type { GraphNode } from '../../src/generated/schemas.js';
import type { PromptInput, ModelRequest } from '../../src/models/port.js';
import { renderPrompt } from '../../src/council/prompt.js';
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

/** A prompt input; missing fields are those of a new run about "Trees". */
export function promptInputFor(
  node: GraphNode,
  state: Partial<Pick<PromptInput, 'topic' | 'draft' | 'feedback'>> = {},
): PromptInput {
  const { label, role, systemPrompt } = node;
  return { label, role, systemPrompt, topic: 'Trees', draft: null, feedback: [], ...state };
}

/** A prompt input with its rendered prompt. */
export function assigned(...[node, state]: Parameters<typeof promptInputFor>): Assignment {
  const promptInput = promptInputFor(node, state);
  return { promptInput, rendered: renderPrompt(promptInput) };
}

/** The model request of a node. */
export function requestFor(
  node: GraphNode,
  state: Partial<Pick<PromptInput, 'topic' | 'draft' | 'feedback'>> = {},
): ModelRequest {
  const promptInput = promptInputFor(node, state);
  return { ...renderPrompt(promptInput), promptInput, answer: node.role === 'critic' ? 'critique' : 'draft' };
}
