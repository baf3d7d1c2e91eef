/** Headers of answers that clients act on: named in the OpenAPI document, and readable from listed origins. */

interface HeaderText {
  readonly description: string;
  readonly type: 'string' | 'integer';
}

export const ANSWER_HEADERS = {
  'Content-Location': { description: 'Path of what the request made or found.', type: 'string' },
  ETag: { description: 'Names this state of what was asked for, for conditional requests.', type: 'string' },
  Link: {
    description: '`<…>; rel="next"`: the next page, with the other parameters as they were sent. Absent on the last.',
    type: 'string',
  },
  Location: { description: 'Path of what was made.', type: 'string' },
  'Retry-After': { description: 'Seconds after which the request is worth another try.', type: 'integer' },
} as const satisfies Readonly<Record<string, HeaderText>>;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** These headers as OpenAPI's map of header objects; empty for none. */
export function headerObjects(names: readonly AnswerHeader[]): Readonly<Record<string, object>> {
  return Object.fromEntries(
    names.map((name) => {
      const { description, type }: HeaderText = ANSWER_HEADERS[name];
      return [name, { description, schema: { type } }];
    }),
  );
}
