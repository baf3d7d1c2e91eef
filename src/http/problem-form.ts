/** Errors in the form of another API: doors answer them as their clients expect. */
import type { Context } from 'koa';
import type { ProblemAnswer } from '../api/problems.js';
import type { SchemaName } from '../api/schemas.js';

/** The form of all errors under a path. */
export interface ProblemForm {
  /** First part of the paths, as `/v1`. */
  readonly prefix: string;
  /** Schema of the body. */
  readonly schema: SchemaName;
  /** The status in this form. */
  readonly statusOf: (status: number) => number;
  readonly answer: (problem: ProblemAnswer) => {
    readonly status: number;
    readonly body: object;
    readonly headers: Readonly<Record<string, string>>;
  };
}

/** The form of the errors at a path, or undefined if they have the form of this service. */
export function problemFormAt(path: string, forms: readonly ProblemForm[]): ProblemForm | undefined {
  return forms.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
}

/** The path of a request, or an empty text if its target cannot be read. */
export function pathIn(ctx: Pick<Context, 'path'>): string {
  try {
    // Koa parses the target on first use. Some that are no URL have no path.
    const path: unknown = ctx.path;
    return typeof path === 'string' ? path : '';
  } catch {
    return '';
  }
}
