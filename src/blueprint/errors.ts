/** Errors of blueprints. */
import { CouncilError } from '../errors.js';

/** No blueprint has this id. */
export class BlueprintUnknown extends CouncilError<{ blueprintId: string }> {
  readonly code = 'blueprint.unknown';
  constructor(data: { blueprintId: string }) {
    super(`Cannot find blueprint "${data.blueprintId}"`, data);
  }
}

/** Councils would contain themselves, or stand too deep in one another. */
export class CouncilNestingRefused extends CouncilError<{ node: string; reason: string }> {
  readonly code = 'blueprint.nesting';
  constructor(data: { node: string; reason: string }) {
    super(`Cannot run the council of node "${data.node}": ${data.reason}`, data);
  }
}

/** Another blueprint has the id. */
export class BlueprintTaken extends CouncilError<{ blueprintId: string }> {
  readonly code = 'blueprint.taken';
  constructor(data: { blueprintId: string }) {
    super(`Cannot create blueprint "${data.blueprintId}": the id is taken`, data);
  }
}

/** The blueprint exceeds its limit, or its record with defaults exceeds that of an append. Nothing has changed. */
export class BlueprintTooLarge extends CouncilError<{ blueprintId: string; bytes: number; limit: number }> {
  readonly code = 'blueprint.too-large';
  constructor(data: { blueprintId: string; bytes: number; limit: number }, options?: ErrorOptions) {
    super(`Cannot save blueprint "${data.blueprintId}": ${data.bytes} bytes, at most ${data.limit} fit`, data, options);
  }
}

/** An event of a blueprint's stream is corrupt. The blueprint can still be deleted. */
export class BlueprintCorrupt extends CouncilError<{ blueprintId: string; seq: number; reason: string }> {
  readonly code = 'blueprint.corrupt';
  constructor(data: { blueprintId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of blueprint "${data.blueprintId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** Other clients kept changing the blueprint, or too many changes wait. Nothing has changed. */
export class BlueprintContended extends CouncilError<{ blueprintId: string }> {
  readonly code = 'blueprint.contended';
  constructor(data: { blueprintId: string }, options?: ErrorOptions) {
    super(`Cannot change blueprint "${data.blueprintId}": others keep changing it`, data, options);
  }
}

/** The blueprint is not in the version that the change expects. Nothing has changed. */
export class BlueprintMoved extends CouncilError<{ blueprintId: string; version: number }> {
  readonly code = 'blueprint.moved';
  constructor(data: { blueprintId: string; version: number }) {
    super(`Cannot change blueprint "${data.blueprintId}": it is another than expected, version ${data.version}`, data);
  }
}
