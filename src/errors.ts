/**
 * The base of every error a caller may catch, and the errors that belong to no one domain; all others stand beside theirs.
 * `code` distinguishes them; api/problems.ts is the one table from code to status. Programming errors are plain errors.
 */

/** Base of all errors: a literal `code`, a message written by the constructor, what it is about in `data`, the `cause` kept. */
export abstract class CouncilError<Data extends object = object> extends Error {
  abstract readonly code: string;
  readonly data: Readonly<Data>;

  constructor(message: string, data: Data, options?: ErrorOptions) {
    super(message, options);
    this.data = data;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/** A setting holds an unusable value. The message is one line whatever the value holds. */
export class ConfigInvalid extends CouncilError<{ variable: string; value: string; accepted: string }> {
  readonly code = 'config.invalid';
  constructor(data: { variable: string; value: string; accepted: string }) {
    const shown = JSON.stringify(data.value.slice(0, 200));
    super(`Cannot use ${data.variable}=${shown}: use ${data.accepted}`, data);
  }
}

/** The service is stopping. */
export class ServiceStopping extends CouncilError {
  readonly code = 'service.stopping';
  constructor() {
    super('Cannot take new work: the service is stopping', {});
  }
}

/** A call to the model gave nothing usable. `kind` names what happened; retryable ones may be asked again in time. */
export class ModelFailed extends CouncilError<ModelFault> {
  readonly code = 'model.failed';
}

export interface ModelFault {
  readonly kind: string;
  readonly retryable: boolean;
  /** How long the provider asked to wait, in milliseconds. */
  readonly retryAfterMs?: number;
  /** The model's server is out; how long the next attempts wait for it to come back, in milliseconds. */
  readonly outageMs?: number;
  /** What the call cost all the same, as far as the provider reported it. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
}
