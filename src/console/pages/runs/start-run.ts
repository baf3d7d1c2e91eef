/** Starts a run from the form, and creates the example council. */
import type { CouncilClient } from '../../../client/client.js';
import { ConflictError, InvalidError } from '../../../client/errors.js';
import type { Blueprint, Budget } from '../../../generated/schemas.js';
import type { JsonSchema } from '../../record/matter.js';
import { errorText } from '../../ui/states.js';
import { STARTER } from '../blueprint/starter.js';

/** The example council: God Mode needs a blueprint. */
export const EXAMPLE = {
  nodes: [...STARTER.nodes],
  edges: [...STARTER.edges],
  id: 'example-council',
  name: 'Example council',
};

/** Example topics. */
export const TOPICS = [
  'Should our town build a public sauna?',
  'A guide to backups for a family of four',
  'Why do teams stop writing tests?',
] as const;

export type Council = Pick<Blueprint, 'id' | 'name' | 'god_mode'>;

export interface Wanted {
  readonly topic: string;
  /** Id of a blueprint, or empty for the built-in council. */
  readonly blueprint: string;
  readonly godMode: boolean;
  /** Model of the members without their own, or empty for that of the service. */
  readonly model: string;
  /** The most that the run may cost, or null for the council's budget, or none. */
  readonly budget: Budget | null;
  /** The text that the council works on; absent for none. */
  readonly material?: string;
  /** Ids of the documents to search; absent for those of the council. */
  readonly documents?: readonly string[];
  /** JSON Schema of the output; absent for that of the council. */
  readonly outputSchema?: JsonSchema;
}

/**
 * Starts a run. Creates the example council first if it is chosen and missing.
 *
 * @param councils the saved councils
 * @returns the run's id
 */
export async function startRun(
  council: Pick<CouncilClient, 'runs' | 'blueprints'>,
  { blueprint, godMode, budget: own, model: name, ...given }: Wanted,
  councils: readonly Council[],
): Promise<string> {
  if (blueprint === EXAMPLE.id && !councils.some(({ id }) => id === EXAMPLE.id)) await makeExample(council);
  const budget = own ?? undefined;
  const model = name === '' ? undefined : name;
  const wanted = { ...given, budget, model };
  const run = await council.runs.start(blueprint === '' ? wanted : { ...wanted, blueprint, godMode });
  return run.id;
}

async function makeExample({ blueprints }: Pick<CouncilClient, 'blueprints'>): Promise<void> {
  try {
    await blueprints.create(EXAMPLE);
  } catch (error) {
    // Another user created it meanwhile.
    if (!(error instanceof ConflictError)) throw error;
  }
}

/** Why a start was refused, and where to show it. */
export interface StartFault {
  readonly at: 'topic' | 'form';
  readonly text: string;
}

export function faultOf(error: unknown): StartFault {
  const errors = error instanceof InvalidError ? error.errors : [];
  const [ofTopic, ofBudget] = ['input_topic', 'budget'].map((name) => errors.find(({ loc }) => loc.includes(name)));
  if (ofTopic !== undefined) return { at: 'topic', text: ofTopic.msg };
  return { at: 'form', text: ofBudget?.msg ?? errorText(error) };
}
