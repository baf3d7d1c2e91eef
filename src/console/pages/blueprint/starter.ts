/** A first council. Apart from the editor, because the page that opens first starts a run of it. */
import type { Draft } from './draft.js';

/** A working example: a writer, a critic who sends work back, and an editor. */
export const STARTER: Draft = {
  name: 'Writer and critic',
  nodes: [
    {
      id: 'writer',
      label: 'Writer',
      systemPrompt: 'Write a clear, well-argued text on the topic. Take up all feedback.',
    },
    {
      id: 'critic',
      label: 'Critic',
      type: 'critic',
      systemPrompt: 'Judge the draft strictly: is it true, clear and complete?',
    },
    { id: 'editor', label: 'Editor', systemPrompt: 'Polish the draft and change nothing in what it says.' },
  ],
  edges: [
    { id: 'writer->critic', source: 'writer', target: 'critic' },
    { id: 'critic->writer', source: 'critic', target: 'writer', type: 'conditional', condition: 'rework' },
    { id: 'critic->editor', source: 'critic', target: 'editor', type: 'conditional', condition: 'approve' },
  ],
};
