/** The requests of the runs that councils start. */
import type { ItemsOf } from '../../draft/items.js';
import { canonical } from '../../eventsourcing/canonical-json.js';
import type { RunRequestedData } from '../../generated/schemas.js';
import { budgetOfChild } from '../budget/spending.js';
import { buildRunRequest, recordedBudget } from '../request.js';
import type { Child, FrontierNode, RunState } from '../state.js';
import { givenToChild } from './council.js';

/** The request of a run that a council has started. It follows from the record of its parent alone. */
export function childRequest(
  run: RunState,
  at: FrontierNode,
  {
    child: { index, runId, title },
    sha256,
    itemsOf,
  }: { readonly child: Child; readonly sha256: (text: string) => string; readonly itemsOf: ItemsOf },
): RunRequestedData {
  const { node, step } = at;
  const { council } = run.plan.node(node);
  if (council === undefined) throw new Error(`Node "${node}" of run "${run.runId}" is no council`);
  const { id, name, graph, documents = run.request.documents, budget } = council;
  const { topic, material } = givenToChild(run, at, { index, itemsOf });
  const own = budget && recordedBudget(budget);
  const request = buildRunRequest({
    runId,
    inputTopic: topic,
    material,
    documents,
    godMode: run.request.godMode,
    blueprint: { id, name },
    graph,
    graphHash: sha256(canonical(graph)),
    keyHash: null,
    bodyHash: sha256(topic),
    actor: run.request.actor,
    budget: budgetOfChild(run.spending, { step, index, own }),
  });
  const root = run.parentRun === null ? {} : { root: run.parentRun.root ?? run.parentRun.runId };
  const item = { index, ...(title !== undefined && { title }) };
  return { ...request, parentRun: { runId: run.runId, node, step, ...item, seq: at.startedSeq, ...root } };
}
