/** Builds requests in Gemini's format. */
import type { FunctionDeclarationsTool, GenerateContentRequest, Part, Schema } from '@google/generative-ai';
import { SchemaType } from '@google/generative-ai';
import { FEEDBACK_SAYS, SCORE_MEANS, SCORES } from '../port.js';
import { fieldOf } from '../../system/untrusted.js';
import type { ModelRequest, ToolDeclaration, ToolParameters, ToolRound } from '../port.js';

/** Differences between models. */
export interface GeminiDialect {
  /** Whether an answer schema may stand beside functions: models before Gemini 3 refuse both together. */
  readonly schemaBesideTools: boolean;
}

/** The contents hold parts of earlier answers as they came, which are more than the package knows. */
interface GeminiRequest extends Omit<GenerateContentRequest, 'contents'> {
  readonly contents: readonly Turn[];
}

interface Turn {
  readonly role: 'user' | 'model';
  readonly parts: readonly unknown[];
}

/** The body of a call. */
export function geminiRequest(request: ModelRequest, { schemaBesideTools }: GeminiDialect): GeminiRequest {
  const { system, prompt, temperature, maxOutputTokens, answer, tools = [], rounds = [] } = request;
  return {
    systemInstruction: { role: 'system', parts: [{ text: system }] },
    contents: [{ role: 'user', parts: [{ text: prompt }] }, ...rounds.flatMap(turnsOf)],
    generationConfig: {
      ...(temperature !== undefined && { temperature }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(answer === 'critique' &&
        (schemaBesideTools || tools.length === 0) && {
          responseMimeType: 'application/json',
          responseSchema: CRITIC_ANSWER,
        }),
    },
    ...(tools.length > 0 && { tools: [functions(tools)] }),
  };
}

/** A tool round as Gemini requires it: its own parts with their thought signatures, then every result. */
function turnsOf({ exchanges }: ToolRound): readonly Turn[] {
  return [
    { role: 'model', parts: exchanges.map(({ call }) => call.echo) },
    {
      role: 'user',
      parts: exchanges.map(({ call, result }): Part => {
        const id = fieldOf(fieldOf(call.echo, 'functionCall'), 'id');
        const functionResponse = { name: call.name, response: { result }, ...(typeof id === 'string' && { id }) };
        return { functionResponse };
      }),
    },
  ];
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

const CRITIC_ANSWER: Schema = {
  type: SchemaType.OBJECT,
  description: 'What a critic is asked to answer.',
  required: ['score', 'feedback'],
  properties: {
    score: { type: SchemaType.STRING, format: 'enum', enum: [...SCORES], description: SCORE_MEANS },
    feedback: { type: SchemaType.STRING, description: FEEDBACK_SAYS },
  },
};
