/** One call to a provider's server, the reader of its answer, and a refusal. */
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import type { Hidden } from './redaction.js';

/** A provider's server, for requests and the messages of failures. */
export interface ModelServer {
  /** Sent with each request and nowhere else; replaces what the package sends. Null values are not sent. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** The setting that holds its address. */
  readonly addressSetting: string;
  /** What to check after a failure, by its kind; mostly a setting. */
  readonly hints: ReadonlyMap<string, string>;
  /** The kind of failure behind a refusal. Default: `kindOfRefusal`. */
  readonly kindOf?: (status: number, body: unknown) => ModelFailureKind;
}

/** The settings that hold a provider's key, model and address, by their names. */
type Settings = Readonly<Record<'key' | 'model' | 'baseUrl', string>>;

/** What to check after a failure of a provider's server, by its kind. */
export function hintsOf({ key, model, baseUrl }: Settings): ModelServer['hints'] {
  return new Map([
    ['unauthorized', `check ${key}`],
    ['forbidden', `check ${key}`],
    ['model_unknown', `check ${model} and ${baseUrl}`],
    ['not_implemented', `check ${model}`],
    ['quota_used_up', `the account of ${key} has no quota or credit left`],
    ['prompt_blocked', 'the prompt was blocked'],
  ]);
}

/** The same for a model that a node names: then not the setting but the node decides. */
export function hintsOfNamed(
  hints: ModelServer['hints'],
  { baseUrl }: Readonly<Record<'baseUrl', string>>,
): ModelServer['hints'] {
  return new Map([
    ...hints,
    ['model_unknown', `check the model of the node and ${baseUrl}`],
    ['not_implemented', 'check the model of the node'],
  ]);
}

/** Reads the answer of one call. */
export interface AnswerReader {
  /** Longest JSON text of a whole answer, in UTF-16 units. Default: 4 Mi. */
  readonly maxChars?: number;
  /** A whole answer in the form that the package reads. @throws {ModelFailed} when it holds an error */
  whole(body: unknown): unknown;
  /**
   * An event of a streamed answer, likewise; null leaves it out. Called with null at the end, for an event that the server
   * left out. @throws {ModelFailed} when it holds an error
   */
  event(event: unknown): unknown;
  /** Whether this event ends the answer; a stream without such an event broke off. */
  isEnd(event: unknown): boolean;
}

/** One model call, from its first request to its answer. */
export interface ServerCall {
  /** How the messages of its failures begin: what was wanted of whom. */
  readonly purpose: string;
  readonly hidden: Hidden;
  readonly signal: AbortSignal;
  /** The time from which to count a wait that the server asks for. */
  readonly now: System['now'];
  /** Model rounds before this one: makes the ids of tool calls unique where the server gives none. */
  readonly rounds: number;
}

/** The server refused a request; another form of the request may be accepted. */
export class ServerRefused extends ModelFailed {
  readonly status: number;
  /** The kind of failure by the server's words, which may be narrower than that of the failure. */
  readonly meant: ModelFailureKind;
  /** Private, so that no logger prints it: a server may quote the key. */
  readonly #said: string;
  constructor(failure: ModelFailed, { status, said, meant }: Pick<ServerRefused, 'status' | 'said' | 'meant'>) {
    super(failure.message, failure.data);
    this.status = status;
    this.meant = meant;
    this.#said = said;
  }

  /** The server's own words, at most 64 KiB. */
  get said(): string {
    return this.#said;
  }
}
