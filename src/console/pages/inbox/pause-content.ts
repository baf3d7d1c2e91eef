/** What a user sees before deciding a pause: its state, the calls that follow and the draft at the pause before. */
import type { CouncilClient, Run } from '../../../client/client.js';
import { UnauthorizedError } from '../../../client/errors.js';
import type { GodModeState, NextCalls } from '../../../generated/schemas.js';

export interface PauseContent {
  /** Or null if the pause was decided meanwhile. */
  readonly state: GodModeState | null;
  /** Or null if it could not be loaded. */
  readonly next: NextCalls | null;
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
  const isOpen = pause?.seq === seq;
  return { state: isOpen ? pause.state : null, next: next?.seq === seq ? next : null, before };
}

async function draftBefore(run: Run, signal: AbortSignal): Promise<string | null> {
  const { decisions } = await run.genealogy({ signal });
  const last = decisions.at(-1);
  return last === undefined ? null : (await run.state({ at: last.seq, signal })).current_draft;
}

/** The user can decide without it. @throws {UnauthorizedError} */
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

/** The label of a node that waits; the id of another. */
export function labelIn({ next }: Pick<PauseContent, 'next'>, node: string): string {
  return next?.nodes.find((each) => each.node === node)?.label ?? node;
}
