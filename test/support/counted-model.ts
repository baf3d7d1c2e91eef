/** The instant model with a record of its calls that outlives the process. */
import { fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { nodeSystem } from '../../src/system/system.js';
import type { LanguageModel, ModelRequest } from '../../src/models/port.js';
import { instantModel } from './instant-model.js';

export interface CallHooks {
  /** A call is about to be made. */
  readonly before?: (request: ModelRequest) => void;
  /** A call is recorded and not answered yet. */
  readonly during?: (request: ModelRequest) => void;
}

/** Each call is a durable line of a file before it is answered: the hash of what was asked, as NodeStarted names it. */
export function countedModel(file: string, hooks: CallHooks = {}): LanguageModel {
  const instant = instantModel();
  const { sha256 } = nodeSystem();
  const calls = openSync(file, 'a');
  return {
    ...instant,
    async ask(request, call) {
      hooks.before?.(request);
      writeSync(calls, `${sha256(`${request.system}\n${request.prompt}`)}\n`);
      fsyncSync(calls);
      await new Promise((resolve) => setImmediate(resolve));
      hooks.during?.(request);
      return await instant.ask(request, call);
    },
  };
}

/** How often each input was asked for. */
export function countedCalls(file: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const inputHash of readFileSync(file, 'utf8').split('\n')) {
    if (inputHash !== '') counts.set(inputHash, (counts.get(inputHash) ?? 0) + 1);
  }
  return counts;
}
