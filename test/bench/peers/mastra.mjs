/**
 * The built-in council as a Mastra workflow: a snapshot after every step, in LibSQL, durable before the next begins.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { Mastra } from '@mastra/core/mastra';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import { LibSQLStore } from '@mastra/libsql';
import { z } from 'zod';

export async function openContestant({ path, model }) {
  const client = createClient({ url: `file:${join(path, 'mastra.sqlite')}` });
  const storage = new LibSQLStore({ id: 'bench', client: atFullSync(client) });
  await storage.init();
  const mastra = new Mastra({ storage, workflows: { council: councilOf(model) }, logger: false });
  const council = mastra.getWorkflow('council');
  return {
    async run() {
      const run = await council.createRun({ runId: randomUUID() });
      const ended = await run.start({ inputData: FIRST });
      if (ended.status !== 'success') throw new Error(`A run of Mastra ended as ${ended.status}`);
      return ended.result.text;
    },
    async stop() {
      const { rows } = await client.execute('PRAGMA synchronous');
      client.close();
      if (rows[0]?.synchronous !== 2) throw new Error('Mastra was not at full sync');
    },
  };
}

/** Ignores the store's request for less than full sync, so that the connection keeps its default, full sync. */
function atFullSync(client) {
  const execute = client.execute.bind(client);
  client.execute = (statement, ...rest) =>
    /PRAGMA synchronous\s*=/i.test(statement.sql ?? statement) ? execute('SELECT 1') : execute(statement, ...rest);
  return client;
}

const Round = z.object({
  topic: z.string(),
  draft: z.string().nullable(),
  score: z.number(),
  feedback: z.array(z.string()),
});
const FIRST = { topic: 'The sea', draft: null, score: 0, feedback: [] };
const Text = z.object({ text: z.string() });

function councilOf(model) {
  const master = createStep({
    id: 'master',
    inputSchema: Round,
    outputSchema: Round,
    execute: async ({ inputData }) => ({ ...inputData, draft: await model.draft(inputData.draft) }),
  });
  const critic = createStep({
    id: 'critic',
    inputSchema: Round,
    outputSchema: Round,
    execute: async ({ inputData }) => {
      const { score, feedback } = await model.critique(inputData.draft);
      return { ...inputData, score, feedback: [...inputData.feedback, feedback] };
    },
  });
  const writer = createStep({
    id: 'writer',
    inputSchema: Round,
    outputSchema: Text,
    execute: async ({ inputData }) => ({ text: await model.draft(inputData.draft) }),
  });
  const round = createWorkflow({ id: 'round', inputSchema: Round, outputSchema: Round })
    .then(master)
    .then(critic)
    .commit();
  return createWorkflow({ id: 'council', inputSchema: Round, outputSchema: Text })
    .dountil(round, async ({ inputData }) => inputData.score >= 8)
    .then(writer)
    .commit();
}
