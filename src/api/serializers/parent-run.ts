/** Serializes the run that has started another one for a council. */
import type { ParentRun, ParentRunShown } from '../../generated/schemas.js';

/** The field of an answer; none for a run that no council has started. */
export function shownParent(parent: ParentRun | null | undefined): { parent_run?: ParentRunShown } {
  if (parent === null || parent === undefined) return {};
  const { runId, node, step, index, title } = parent;
  return { parent_run: { run_id: runId, node, step, index, ...(title !== undefined && { title }) } };
}
