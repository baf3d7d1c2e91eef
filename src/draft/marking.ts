/** What made a draft: the mark that files with it carry when they leave the service. */
import type { RunEvent } from '../client/run-events.js';

export interface Marking {
  /** Name of the council. */
  readonly council: string;
  /** The models that were asked, in the order of their first calls. */
  readonly models: readonly string[];
  readonly runId: string;
  /** Hash of the run's last event. */
  readonly headHash: string;
  /** Ids of the runs that its councils have started. */
  readonly childRuns: readonly string[];
  /** Who let the run, and those that its councils have started, go on at their pauses, and when (ISO 8601). */
  readonly approvals: readonly { readonly by: string; readonly at: string }[];
  /** The IPTC digital source type: another one if a person has changed the draft. */
  readonly sourceType: 'trainedAlgorithmicMedia' | 'compositeWithTrainedAlgorithmicMedia';
}

/** Reads the events of a run in order: all of them, or the first `max`. */
export type ReadEvents = <T>(
  runId: string,
  read: (events: AsyncIterable<RunEvent>) => Promise<T>,
  max?: number,
) => Promise<T>;

type RunRequest = Extract<RunEvent, { type: 'RunRequested' }>['data'];

/** What one record says of a draft. */
interface Own extends Omit<Marking, 'runId' | 'sourceType'> {
  readonly isChanged: boolean;
  readonly request: RunRequest | null;
}

/**
 * The mark of a run, or null if it has no events. It includes what the runs of its councils did, and that of a fork what its
 * parents did up to the fork point, as far as their records can still be read.
 */
export async function markingOf(runId: string, read: ReadEvents): Promise<Marking | null> {
  const own = await read(runId, (events) => ownOf(events));
  if (own.request === null) return null;
  let { models, approvals, isChanged, childRuns } = own;
  let request: RunRequest | null = own.request;
  while (request?.parent) {
    const found: Own | null = await ownOfParent(request.parent, request, read);
    if (found === null) break;
    models = [...new Set([...found.models, ...models])];
    approvals = [...found.approvals, ...approvals];
    isChanged ||= found.isChanged;
    childRuns = [...new Set([...found.childRuns, ...childRuns])];
    ({ request } = found);
  }
  for (const child of childRuns) {
    const mark = await markingOf(child, read).catch(() => null);
    if (mark === null) continue;
    models = [...new Set([...models, ...mark.models])];
    approvals = [...approvals, ...mark.approvals];
    isChanged ||= mark.sourceType === 'compositeWithTrainedAlgorithmicMedia';
  }
  const sourceType = isChanged ? 'compositeWithTrainedAlgorithmicMedia' : 'trainedAlgorithmicMedia';
  const { council, headHash } = own;
  return { council, models, runId, headHash, childRuns, approvals, sourceType };
}

/** What a parent had recorded up to the fork point, or null if its record cannot be read or is another one. */
async function ownOfParent(
  { runId, at, hash }: NonNullable<RunRequest['parent']>,
  { changes }: RunRequest,
  read: ReadEvents,
): Promise<Own | null> {
  // A fork with changes opens the pause again that the parent decided at the fork point.
  const isReopened = Object.values(changes ?? {}).some((each) => (Array.isArray(each) ? each.length > 0 : each));
  try {
    const found = await read(runId, (events) => ownOf(events, isReopened ? at : null), at + 1);
    return found.headHash === hash ? found : null;
  } catch {
    return null;
  }
}

/** @param reopened number of a decision that does not count, or null */
async function ownOf(events: AsyncIterable<RunEvent>, reopened: number | null = null): Promise<Own> {
  let [headHash, isChanged] = ['', false];
  let request: Own['request'] = null;
  const models = new Set<string>();
  const childRuns = new Set<string>();
  const approvals: { by: string; at: string }[] = [];
  for await (const event of events) {
    headHash = event.hash;
    if (event.type === 'RunRequested') request = event.data;
    if (event.type === 'ChildStarted') childRuns.add(event.data.child);
    for (const model of modelsIn(event)) models.add(model);
    if (event.type === 'GateDecided' && event.seq === reopened) continue;
    isChanged ||= changesDraft(event);
    approvals.push(...approvalIn(event));
  }
  const council = request?.blueprintName ?? 'Built-in council';
  return { council, models: [...models], headHash, childRuns: [...childRuns], approvals, isChanged, request };
}

/** The models that an event names; the record of a council's run may be erased when its parent's is read. */
function modelsIn({ type, data }: RunEvent): readonly string[] {
  if (type === 'ChildEnded') return data.usage.byModel.map(({ model }) => model);
  // A council asks no model.
  return type === 'NodeStarted' && data.model !== '' ? [data.model] : [];
}

function approvalIn(event: RunEvent): Marking['approvals'] {
  if (event.type !== 'GateDecided' || event.data.action === 'reject') return [];
  return [{ by: event.data.by ?? event.data.actor ?? 'a person', at: event.at }];
}

/** Whether a person's decision, or what they changed for a fork, has replaced a draft. */
export function changesDraft(event: RunEvent): boolean {
  let fields: readonly string[] = [];
  if (event.type === 'RunRequested') fields = event.data.changes?.state ?? [];
  if (event.type === 'GateDecided' && event.data.action === 'modify')
    fields = Object.keys(event.data.modifiedState ?? {});
  return fields.some((field) => field === 'current_draft' || field === 'branches');
}

/** The address of a digital source type in IPTC's vocabulary. */
function sourceTypeUrl({ sourceType }: Marking): string {
  return `http://cv.iptc.org/newscodes/digitalsourcetype/${sourceType}`;
}

/** The mark as names and values, for the properties of a document and the `meta` elements of a page. */
export function markProperties(marking: Marking): readonly (readonly [name: string, value: string])[] {
  const { council, models, runId, headHash, childRuns, approvals } = marking;
  const children = [['child-runs', childRuns.join(', ')] as const];
  return [
    ['council', council],
    ['models', models.join(', ')],
    ['run-id', runId],
    ['head-hash', headHash],
    ...(childRuns.length === 0 ? [] : children),
    ['approved', approvals.map(({ by, at }) => `${by} at ${at}`).join(', ')],
    ['digital-source-type', sourceTypeUrl(marking)],
  ];
}

/** The mark as one sentence for readers. */
export function markLine({ council, models, runId, approvals, sourceType }: Marking): string {
  const made = sourceType === 'trainedAlgorithmicMedia' ? 'Written' : 'Written, and changed by a person,';
  const by = approvals.length === 0 ? '' : `, approved by ${[...new Set(approvals.map((each) => each.by))].join(', ')}`;
  return `${made} with AI: ${council} (${models.join(', ')})${by}. Run ${runId}.`;
}

/** The mark as YAML front matter of a Markdown file. */
export function frontMatter(marking: Marking): string {
  const { council, models, runId, headHash, childRuns, approvals } = marking;
  // A JSON text is YAML.
  const fields = {
    council,
    models,
    run_id: runId,
    head_hash: headHash,
    ...(childRuns.length > 0 && { child_runs: childRuns }),
    approved: approvals,
    digital_source_type: sourceTypeUrl(marking),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\n---\n\n`;
}
