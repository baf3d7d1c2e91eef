import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { Reply } from '../support/scripted-model.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';

/** A request as a program's package has sent it. */
interface Recorded {
  readonly package: string;
  readonly call: string;
  readonly path: string;
  readonly body: { readonly stream?: boolean };
}

const RECORDED = JSON.parse(
  readFileSync(new URL('../../../test/openai-api/recorded-requests.json', import.meta.url), 'utf8'),
) as readonly Recorded[];

/** Valid by the schema in every recorded request; the model gives it after one that is not. */
const VALUE = { title: 'Oaks', votes: 3, tags: ['a'], note: null };
const UNFIT = { ...VALUE, votes: -1 };

describe('The recorded request for a structured output', () => {
  let service: RunningService;

  before(async () => {
    const others = councilScript([8]);
    const model = scriptedModel((request, index): Reply => {
      if (request.answer !== 'output') return others(request, index);
      return { text: JSON.stringify(request.prompt.includes('/votes must be >= 0') ? VALUE : UNFIT) };
    });
    service = await startService({ model });
  });
  after(() => service.stop());
  afterEach('no fault', () => expect(service.faults).to.deep.equal([]));

  for (const { package: name, call, path, body } of RECORDED) {
    it(`of ${name}, ${call}, gets JSON that is valid by its schema`, async () => {
      const reply = await fetch(service.url + path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await reply.text();
      expect(reply.status, text).to.equal(200);
      const parts = body.stream === true ? eventsIn(text).map(deltaOf) : [contentOf(JSON.parse(text) as Completion)];
      expect(parts.join('')).to.equal(canonical(VALUE));
    });
  }
});

interface Completion {
  readonly choices?: readonly {
    readonly message?: { readonly content: string };
    readonly delta?: { content?: string };
  }[];
  readonly output?: readonly { readonly content: readonly { readonly text: string }[] }[];
  readonly type?: string;
  readonly delta?: string;
}

function contentOf(answer: Completion): string | undefined {
  return answer.choices?.[0]?.message?.content ?? answer.output?.[0]?.content[0]?.text;
}

/** The values of the events of a stream, without `[DONE]`. */
function eventsIn(stream: string): readonly Completion[] {
  const data = stream.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []));
  return data.map((json) => JSON.parse(json) as Completion);
}

/** What an event of a stream adds to the content. */
function deltaOf({ choices, type, delta }: Completion): string {
  if (type === 'response.output_text.delta') return delta ?? '';
  return choices?.[0]?.delta?.content ?? '';
}
