/** Writes a request in Gemini's words. */
import type { Content, FunctionDeclarationsTool, GenerateContentRequest, Part, Schema } from '@google/generative-ai';
import { SchemaType } from '@google/generative-ai';
import { fieldOf } from './field.js';
import type { ModelRequest, ToolDeclaration, ToolParameters, ToolRound } from './port.js';

/** The body of a call, system instruction and model apart. */
export function geminiRequest(request: ModelRequest): GenerateContentRequest {
  const { prompt, temperature, maxOutputTokens, answer, tools = [], rounds = [] } = request;
  return {
    contents: [{ role: 'user', parts: [{ text: prompt }] }, ...rounds.flatMap(turnsOf)],
    generationConfig: {
      ...(temperature !== undefined && { temperature }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      // An answer schema beside functions is refused by models before Gemini 3.
      ...(answer === 'critique' &&
        tools.length === 0 && { responseMimeType: 'application/json', responseSchema: CRITIC_ANSWER }),
    },
    ...(tools.length > 0 && { tools: [functions(tools)] }),
  };
}

/** A round as Gemini wants to see it again: its own parts with their thought signatures, then every result. */
function turnsOf({ exchanges }: ToolRound): readonly Content[] {
  return [
    { role: 'model', parts: exchanges.map(({ call }) => echoed(call.echo)) },
    {
      role: 'user',
      parts: exchanges.map(({ call, result }): Part => {
        const id = fieldOf(fieldOf(call.echo, 'functionCall'), 'id');
        const told = { name: call.name, response: { result }, ...(typeof id === 'string' && { id }) };
        return { functionResponse: told };
      }),
    },
  ];
}

/** The part itself, as it came: readGeminiAnswer has put it there. */
function echoed(part: unknown): Part {
  return part as Part;
}

function functions(tools: readonly ToolDeclaration[]): FunctionDeclarationsTool {
  return {
    functionDeclarations: tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters: { type: SchemaType.OBJECT, properties: propertiesOf(parameters), required: [...parameters.required] },
    })),
  };
}

function propertiesOf({ properties }: ToolParameters): Record<string, Schema> {
  const entries = Object.entries(properties).map(([name, { type, description }]): [string, Schema] => [
    name,
    type === 'integer' ? { type: SchemaType.INTEGER, description } : { type: SchemaType.STRING, description },
  ]);
  return Object.fromEntries(entries);
}

/** schemas/critic-answer.json in Gemini's dialect, as far as the SDK's types know it: no `minimum`, `maximum`. The prompt names them. */
const CRITIC_ANSWER: Schema = {
  type: SchemaType.OBJECT,
  description: 'What a critic is asked to answer.',
  required: ['score', 'feedback'],
  properties: {
    score: { type: SchemaType.NUMBER, description: 'From 0 to 10; 8 or more approves the draft.' },
    feedback: { type: SchemaType.STRING, description: 'What would raise the score.' },
  },
};
