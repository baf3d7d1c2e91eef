/**
 * A server like llama.cpp's: it enforces an answer schema by a grammar that ignores bounds of numbers, has one slot,
 * and answers 503 while its model loads. Where the grammar leaves a choice, it writes the worst valid text.
 */
import type { OpenAiRequest } from './fake-openai.js';
import { isCritique, refuses, says } from './fake-openai.js';
import type { FakeServer, Reply } from './fake-server.js';
import { fakeServer } from './fake-server.js';

export interface FakeLlama extends FakeServer<OpenAiRequest> {
  /** The highest number of answers that it computed at the same time. */
  mostAtOnce(): number;
}

export interface LlamaTraits {
  /** Number of requests that it answers as if its model were loading. */
  readonly loading?: number;
  /** Whether it refuses a schema together with tools. Otherwise its grammar prevents tool calls. */
  readonly refusesSchemaBesideTools?: boolean;
  /** Text before every answer without a grammar. */
  readonly thoughts?: string;
}

export async function fakeLlama(traits: LlamaTraits = {}): Promise<FakeLlama> {
  const { loading = 0, refusesSchemaBesideTools = true, thoughts = '' } = traits;
  const slot = oneSlot();
  const server = await fakeServer<OpenAiRequest>(({ body }, index) => {
    if (index < loading) return refuses(503, { message: 'Loading model', code: 'unavailable_error' });
    const schema = body.response_format?.json_schema?.schema;
    if (schema !== undefined && body.tools !== undefined && refusesSchemaBesideTools) {
      return refuses(400, { message: 'Cannot use custom grammar constraints with tools.' });
    }
    if (schema !== undefined) return slot.use(says(JSON.stringify(byGrammar(schema))));
    return slot.use(says(`${thoughts}${isCritique(body) ? 'A solid 9, I would say.' : 'A draft.'}`));
  });
  return { ...server, mostAtOnce: slot.mostAtOnce };
}

/** Accepts requests at once and handles them one after the other. */
function oneSlot() {
  const waiting: (() => void)[] = [];
  let [working, most] = [0, 0];
  const next = (): void => {
    if (working === 0) waiting.shift()?.();
  };
  return {
    mostAtOnce: () => most,
    use: (reply: Reply): Reply => {
      return (response) => {
        waiting.push(() => {
          working += 1;
          most = Math.max(most, working);
          response.on('close', () => {
            working -= 1;
            next();
          });
          setImmediate(reply, response);
        });
        next();
      };
    },
  };
}

/** The least useful value that the grammar of the schema allows. */
function byGrammar(schema: unknown): unknown {
  const { enum: choices, type, properties } = readSchema(schema);
  if (choices !== undefined) return choices.at(-1);
  if (type === 'object')
    return Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, byGrammar(of)]));
  return type === 'number' ? 525657 : 'words';
}

interface Schema {
  readonly type: unknown;
  readonly enum?: readonly unknown[];
  readonly properties: object;
}

function readSchema(schema: unknown): Schema {
  return { type: null, properties: {}, ...(typeof schema === 'object' ? schema : {}) };
}
