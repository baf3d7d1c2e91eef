/** A client of server-sent events that keeps all events and waits for conditions. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { get } from 'node:http';

export interface StreamedEvent {
  /** Empty if the event has none. */
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export interface EventStreamClient {
  /** The complete events so far. */
  readonly events: readonly StreamedEvent[];
  /** All other text so far, such as comments. */
  readonly others: readonly string[];
  /** Resolves with the answer's head; rejects when there is none. */
  readonly answered: Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders }>;
  /** Resolves with the first matching event, past or future; rejects if the stream ends before. */
  until(fits: (event: StreamedEvent) => boolean): Promise<StreamedEvent>;
  /** Pauses and resumes reading. */
  pause(): Promise<void>;
  resume(): void;
  leave(): void;
  /** Resolves at the end of the stream: `ended` by the service, or `cut` in the middle of the answer. */
  readonly over: Promise<'ended' | 'cut'>;
}

/** Connects to a stream of the service at `url`. */
export function openEventStream(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): EventStreamClient {
  const events: StreamedEvent[] = [];
  const others: string[] = [];
  const waiting = new Set<() => void>();
  const check = (): void => waiting.forEach((each) => each());
  const request = get(url + path, { headers, agent: false });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', reject);
  });
  let isOver = false;
  const over = response.then((answer) => read(answer)).catch((): 'cut' => 'cut');
  void over.then(() => {
    isOver = true;
    check();
  });

  function read(answer: IncomingMessage): Promise<'ended' | 'cut'> {
    let rest = '';
    answer.setEncoding('utf8').on('data', (chunk: string) => {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) take(block);
      check();
    });
    answer.on('error', () => undefined);
    return new Promise((resolve) => answer.on('close', () => resolve(answer.complete ? 'ended' : 'cut')));
  }

  function take(block: string): void {
    const [, id = '', event, data] = /^(?:id: (.*)\n)?event: (.*)\ndata: (.*)$/.exec(block) ?? [];
    if (event === undefined || data === undefined) others.push(block);
    else events.push({ id, event, data });
  }

  const answered = response.then(({ statusCode = 0, headers: head }) => ({ status: statusCode, headers: head }));
  answered.catch(() => undefined);
  return {
    events,
    others,
    answered,
    until: (fits) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = events.find(fits);
          if (found === undefined && !isOver) return;
          waiting.delete(look);
          if (found === undefined) reject(new Error(`The stream is over after ${JSON.stringify(events)}`));
          else resolve(found);
        };
        waiting.add(look);
        look();
      }),
    pause: async () => void (await response).pause(),
    resume: () => void response.then((answer) => answer.resume()),
    leave: () => request.destroy(),
    over,
  };
}
