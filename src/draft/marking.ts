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

/** How a draft was made, by the record of its run alone, or also by those of the run's parents and councils. */
interface Made extends Pick<Marking, 'council' | 'models' | 'headHash' | 'approvals'> {
  readonly isChanged: boolean;
  readonly request: RunRequest | null;
  readonly childRuns: readonly string[];
}

/**
 * The mark of a run, or null if it has no events. It includes what the runs of its councils did, and that of a fork what its
 * parents did up to the fork point, as far as their records can still be read.
 */
export async function markingOf(runId: string, read: ReadEvents): Promise<Marking | null> {
  const made = await madeIn(runId, read);
  if (made === null) return null;
  const { council, models, headHash, approvals, isChanged } = made;
  const sourceType = isChanged ? 'compositeWithTrainedAlgorithmicMedia' : 'trainedAlgorithmicMedia';
  return { council, models, runId, headHash, approvals, sourceType };
}

/**
 * How the draft of a run was made, by all records that can be read; null if its own has no events or is not the one forked.
 *
 * @param fork the request that continues the run, or null if all of the run counts
 */
async function madeIn(runId: string, read: ReadEvents, fork: RunRequest | null = null): Promise<Made | null> {
  const end = fork?.parent ?? null;
  const own = await read(runId, (events) => ownOf(events, fork), end === null ? undefined : end.at + 1);
  const { request, headHash, childRuns } = own;
  if (request === null || headHash !== (end?.hash ?? headHash)) return null;
  // A record that is erased or damaged says nothing.
  const orNull = (of: string, by?: RunRequest): Promise<Made | null> => madeIn(of, read, by).catch(() => null);
  const all = [request.parent ? await orNull(request.parent.runId, request) : null, own];
  for (const child of childRuns) all.push(await orNull(child));
  const found = all.filter((each) => each !== null);
  return {
    ...own,
    models: [...new Set(found.flatMap(({ models }) => models))],
    approvals: found.flatMap(({ approvals }) => approvals),
    isChanged: found.some(({ isChanged }) => isChanged),
  };
}

async function ownOf(events: AsyncIterable<RunEvent>, fork: RunRequest | null): Promise<Made> {
  const reopened = fork === null ? null : reopenedBy(fork);
  let [headHash, isChanged] = ['', false];
  let request: Made['request'] = null;
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

/** A fork with changes opens the pause again that the parent decided at the fork point: then its number, else null. */
function reopenedBy({ parent, changes }: RunRequest): number | null {
  const hasChanges = Object.values(changes ?? {}).some((each) => (Array.isArray(each) ? each.length > 0 : each));
  return parent && hasChanges ? parent.at : null;
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

/** The fields of the mark, as files name them. */
function fieldsOf(marking: Marking) {
  const { council, models, runId, headHash, approvals, sourceType } = marking;
  return {
    council,
    models,
    run_id: runId,
    head_hash: headHash,
    approved: approvals,
    digital_source_type: `http://cv.iptc.org/newscodes/digitalsourcetype/${sourceType}`,
  };
}

/** The mark as names and values, for the properties of a document and the `meta` elements of a page. */
export function markProperties(marking: Marking): readonly (readonly [name: string, value: string])[] {
  const approved = marking.approvals.map(({ by, at }) => `${by} at ${at}`);
  return Object.entries({ ...fieldsOf(marking), approved }).map(
    ([name, value]) => [name.replaceAll('_', '-'), typeof value === 'string' ? value : value.join(', ')] as const,
  );
}

/** The mark as one sentence for readers. */
export function markLine({ council, models, runId, approvals, sourceType }: Marking): string {
  const made = sourceType === 'trainedAlgorithmicMedia' ? 'Written' : 'Written, and changed by a person,';
  const by = approvals.length === 0 ? '' : `, approved by ${[...new Set(approvals.map((each) => each.by))].join(', ')}`;
  return `${made} with AI: ${council} (${models.join(', ')})${by}. Run ${runId}.`;
}

/** The mark as YAML front matter of a Markdown file. */
export function frontMatter(marking: Marking): string {
  // A JSON text is YAML.
  const lines = Object.entries(fieldsOf(marking)).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\n---\n\n`;
}
