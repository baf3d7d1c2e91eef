/** What a user sees before deciding a pause: its state, the calls that follow and the draft at the pause before. */
import type { CouncilClient, Run } from '../../../client/client.js';
import { UnauthorizedError } from '../../../client/errors.js';
import type { GodModeState, NextCalls } from '../../../generated/schemas.js';

export interface PauseContent {
  /** Or null if the pause was decided meanwhile. */
  readonly state: GodModeState | null;
  /** Or null if it could not be loaded. */
  readonly next: NextCalls | null;
  /** Labels of the nodes whose drafts the state has, by id. */
  readonly labels: ReadonlyMap<string, string>;
  /** The draft at the pause before, or null if there is none or it could not be loaded. */
  readonly before: string | null;
}

export async function loadPause(
  client: Pick<CouncilClient, 'run'>,
  { runId, seq }: { readonly runId: string; readonly seq: number },
  signal: AbortSignal,
): Promise<PauseContent> {
  const run = client.run(runId);
  const [pause, next, before] = await Promise.all([
    run.pause({ signal }),
    nullIfFailed(run.next({ signal })),
    nullIfFailed(draftBefore(run, signal)),
  ]);
  const state = pause?.seq === seq ? pause.state : null;
  const labels = new Map(next?.nodes.map(({ node, label }) => [node, label]));
  const isKnown = state?.branches?.every(({ node }) => labels.has(node)) ?? true;
  const all = isKnown ? null : await nullIfFailed(labelsOf(run, signal));
  return { state, next: next?.seq === seq ? next : null, labels: all ?? labels, before };
}

/** The labels of all nodes, as the run froze them in its first event. */
async function labelsOf(run: Run, signal: AbortSignal): Promise<ReadonlyMap<string, string> | null> {
  for await (const event of run.events({ signal })) {
    if (event.type !== 'RunRequested') return null;
    return new Map(event.data.graph.nodes.map(({ id, label }) => [id, label]));
  }
  return null;
}

async function draftBefore(run: Run, signal: AbortSignal): Promise<string | null> {
  const { decisions } = await run.genealogy({ signal });
  const last = decisions.at(-1);
  return last === undefined ? null : (await run.state({ at: last.seq, signal })).current_draft;
}

/** A value without which the user can still decide, or null if it could not be loaded. @throws {UnauthorizedError} */
async function nullIfFailed<T>(loading: Promise<T>): Promise<T | null> {
  return await loading.catch((error: unknown) => {
    if (error instanceof UnauthorizedError) throw error;
    return null;
  });
}

/** The labels of the members that wait. */
export function nextLabels({ next }: Pick<PauseContent, 'next'>): readonly string[] {
  return next?.nodes.map(({ label }) => label) ?? [];
}

/** The label of a node whose draft the state has; the id of another. */
export function labelIn({ labels }: Pick<PauseContent, 'labels'>, node: string): string {
  return labels.get(node) ?? node;
}
