/** Errors in the form of another API: a door answers errors in the form that its clients expect. */
import type { ProblemAnswer } from './problems.js';
import type { SchemaName } from './schemas.js';

/** The form of all errors under a path. */
export interface ProblemForm {
  /** First part of the paths, such as `/v1`. */
  readonly prefix: string;
  /** Schema of the body. */
  readonly schema: SchemaName;
  /** The status that this form has in place of the service's own. */
  readonly statusOf: (status: number) => number;
  readonly answer: (problem: ProblemAnswer) => FormedProblem;
}

export interface FormedProblem {
  readonly status: number;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
}

/** The form of the errors at a path, or undefined if they have the form of this service. */
export function problemFormAt(path: string, forms: readonly ProblemForm[]): ProblemForm | undefined {
  return forms.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
}

/** A problem in the form of the errors at a path. */
export function problemAt(path: string, problem: ProblemAnswer, forms: readonly ProblemForm[]): FormedProblem {
  return problemFormAt(path, forms)?.answer(problem) ?? problem;
}

/** The path and the query of a request target, which may be in absolute form. */
export function partsOfTarget(target: string): { readonly path: string; readonly query: string } {
  const [origin = ''] = /^(?:https?|wss?):\/\/[^/?]*/i.exec(target) ?? [];
  const [path = '', ...query] = target.slice(origin.length).split('?');
  return { path, query: query.join('?') };
}
