/** What the runs of a history went through with panels, so that a test can tell that the plans cover it. */
import type { PanelClosedData } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';

export const MET = [
  ...(['panels', 'ranks', 'judges', 'juries'] as const),
  /** A quorum answered while others had time left; an answer was discarded; a member failed; a run failed below it. */
  ...(['quorum', 'discarded', 'member-failed', 'below-quorum'] as const),
  /** A member went on with another model; a run with panels has a budget; one began as a fork with an open panel. */
  ...(['fallback', 'panel-budget', 'fork-in-panel'] as const),
] as const;

export type Met = (typeof MET)[number];

/** What an event says that a run went through. */
export function metAt({ type, data }: RunEvent): readonly Met[] {
  switch (type) {
    case 'RunRequested':
      return data.state?.front.some(({ seat }) => seat !== undefined) === true ? ['fork-in-panel'] : [];
    case 'NodeStarted':
      return data.panelStep !== undefined && data.reserved !== undefined ? ['panel-budget'] : [];
    case 'NodeCompleted':
      return 'analysis' in data.output ? ['judges'] : [];
    case 'NodeFailed':
      return data.panelStep === undefined || data.fallbackTo === undefined ? [] : ['fallback'];
    case 'QuorumReached':
      return ['quorum'];
    case 'PanelClosed':
      return metAtClose(data);
    case 'RunFailed':
      return / of its \d members can answer/u.test(data.error) ? ['below-quorum'] : [];
    default:
      return [];
  }
}

function metAtClose({ result, discarded, failed }: PanelClosedData): readonly Met[] {
  const kind = result === null ? 'panels' : 'kept' in result ? 'ranks' : 'juries';
  return [
    kind,
    ...(discarded.length > 0 ? (['discarded'] as const) : []),
    ...(failed.length > 0 ? (['member-failed'] as const) : []),
  ];
}
