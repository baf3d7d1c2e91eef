/** The instant model with a file of its calls, which survives the process. */
import { fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { nodeSystem } from '../../src/system/system.js';
import type { LanguageModel, ModelRequest } from '../../src/models/port.js';
import { userMessage } from '../../src/models/material.js';
import { instantModel } from './instant-model.js';

export interface CallHooks {
  /** Called before a call is recorded. */
  readonly before?: (request: ModelRequest) => void;
  /** Called after a call is recorded and before its answer. */
  readonly during?: (request: ModelRequest) => void;
  /** Whether critics answer their first question with nonsense, so that each is asked twice. */
  readonly areCriticsVague?: boolean | undefined;
}

/** Writes each call durably into a file before it answers, as {@link callOf} names it by NodeStarted. */
export function countedModel(file: string, hooks: CallHooks = {}): LanguageModel {
  const instant = instantModel();
  const { sha256 } = nodeSystem();
  const calls = openSync(file, 'a');
  return {
    ...instant,
    async ask(request, call) {
      hooks.before?.(request);
      const inputHash = sha256(`${request.system}\n${userMessage(request)}`);
      writeSync(calls, `${callOf({ model: request.model, inputHash })}\n`);
      fsyncSync(calls);
      await new Promise((resolve) => setImmediate(resolve));
      hooks.during?.(request);
      const answer = await instant.ask(request, call);
      const isVague = hooks.areCriticsVague === true && request.answer === 'critique';
      return isVague && !request.prompt.includes('could not be used') ? { ...answer, text: 'Hm.' } : answer;
    },
  };
}

/** A call by its model and the hash of its prompt, which is the same for all members of a panel. */
export function callOf({
  model,
  inputHash,
}: {
  readonly model: string | undefined;
  readonly inputHash: string;
}): string {
  return `${model} ${inputHash}`;
}

/** The number of times that each call was made. */
export function countedCalls(file: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const inputHash of readFileSync(file, 'utf8').split('\n')) {
    if (inputHash !== '') counts.set(inputHash, (counts.get(inputHash) ?? 0) + 1);
  }
  return counts;
}
