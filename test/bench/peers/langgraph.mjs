/** The built-in council in LangGraph.js: a checkpoint after every node, in SQLite, durable before the next begins. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import Database from 'better-sqlite3';

export async function openContestant({ path, model }) {
  const database = new Database(join(path, 'langgraph.sqlite'));
  const checkpointer = new SqliteSaver(database);
  checkpointer.setup();
  // After setup, which sets WAL mode with the weaker default of this build of SQLite.
  database.pragma('synchronous = FULL');
  const council = councilOf(model).compile({ checkpointer });
  return {
    async run() {
      const configurable = { thread_id: randomUUID() };
      const { text } = await council.invoke({ topic: 'The sea' }, { configurable, durability: 'sync' });
      return text;
    },
    async stop() {
      if (database.pragma('synchronous', { simple: true }) !== 2) throw new Error('LangGraph was not at full sync');
      database.close();
    },
  };
}

function councilOf(model) {
  const Run = Annotation.Root({
    topic: Annotation(),
    draft: Annotation(),
    score: Annotation(),
    feedback: Annotation({ reducer: (before, more) => before.concat(more), default: () => [] }),
    text: Annotation(),
  });
  return new StateGraph(Run)
    .addNode('master', async ({ draft }) => ({ draft: await model.draft(draft ?? null) }))
    .addNode('critic', async ({ draft }) => {
      const { score, feedback } = await model.critique(draft);
      return { score, feedback: [feedback] };
    })
    .addNode('writer', async ({ draft }) => ({ text: await model.draft(draft) }))
    .addEdge(START, 'master')
    .addEdge('master', 'critic')
    .addConditionalEdges('critic', ({ score }) => (score >= 8 ? 'writer' : 'master'))
    .addEdge('writer', END);
}
