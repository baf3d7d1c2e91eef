/** Makes this instance the one that delivers a webhook. */
import type { Position } from '../eventlog/port.js';
import type { AppendDeps } from '../eventsourcing/aggregate.js';
import { appendFacts } from '../eventsourcing/aggregate.js';
import { isUnreadable } from '../run/errors.js';
import { runStream } from '../run/events.js';
import type { Deliveries, RunEventRef } from './deliveries.js';
import { claimedBy, evolveDeliveries, readDeliveries } from './deliveries.js';
import { deliveryStream } from './events.js';
import type { Webhook } from './state.js';

/** Deliveries that this instance owns, and the position up to which the log is considered. */
export interface Claimed {
  readonly state: Deliveries;
  readonly place: Position;
}

/**
 * Claims the deliveries of a webhook in their stream. Resolves with the present owner if it may not be replaced.
 *
 * @param isFree whether an owner may be replaced
 * @throws {RevisionConflict} another instance was first
 * @throws {WebhookCorrupt | LogUnavailable}
 */
export async function claimDeliveries(
  webhook: Webhook,
  { deps, isFree, signal }: ClaimOptions,
): Promise<Claimed | { readonly owner: string }> {
  const { log, instanceId } = deps;
  const { id } = webhook;
  const before = await readDeliveries(log, id);
  if (before.owner !== null && !isFree(before.owner)) return { owner: before.owner };
  const place = await placeOf(webhook, before, deps);
  const fact = claimedBy(instanceId, before);
  const after = { stream: deliveryStream(id), subject: id, head: before.head, facts: [fact] };
  const { recorded } = await appendFacts(deps, after, signal);
  return { place, state: recorded.reduce(evolveDeliveries, before) };
}

export interface ClaimOptions {
  readonly deps: AppendDeps;
  readonly isFree: (owner: string) => boolean;
  readonly signal: AbortSignal;
}

/**
 * A position up to which all events are considered: the position of the last considered event. If that event is lost or its
 * run is corrupt, the position of an earlier delivery or of the registration, so that no event is omitted.
 */
async function placeOf(
  { registeredAt }: Webhook,
  { through, delivered, failed }: Deliveries,
  { log }: Pick<AppendDeps, 'log'>,
): Promise<Position> {
  if (through === null) return registeredAt;
  for (const event of [through, ...delivered.toReversed(), ...failed.toReversed()]) {
    const position = await positionOf(event, log);
    if (position !== null) return position;
  }
  return registeredAt;
}

/** The position of an event, or null if it cannot be read. */
async function positionOf({ runId, seq }: RunEventRef, log: AppendDeps['log']): Promise<Position | null> {
  try {
    for await (const { revision, position } of log.readStream(runStream(runId), { from: seq, max: 1 }))
      if (revision === seq) return position;
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  return null;
}
