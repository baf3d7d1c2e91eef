/** One service for the tests of a block, which differ only in the model. */
import type { LanguageModel } from '../../src/models/port.js';
import { RunFinished } from '../../src/run/errors.js';
import type { RunningService, ServiceOverrides } from './running-service.js';
import { startService } from './running-service.js';
import { currentModel } from './scripted-model.js';

export interface SharedService {
  /** Returns the service of the block, which uses this model until the end of the test. */
  serve(model: LanguageModel): Promise<RunningService>;
  /** Starts another service for this test alone. */
  serveAlone(model: LanguageModel, overrides?: ServiceOverrides): Promise<RunningService>;
}

/** Shares a service among the tests of a block. Cancels a test's active runs after it. */
export function sharedService(overrides: ServiceOverrides = {}): SharedService {
  let current: LanguageModel;
  let shared: RunningService | null = null;
  let alone: RunningService | null = null;

  afterEach(async () => {
    await alone?.stop();
    alone = null;
    if (shared !== null) await cancelAll(shared);
  });
  after(() => shared?.stop());

  return {
    async serve(model) {
      current = model;
      return (shared ??= await startService({ ...overrides, model: currentModel(() => current) }));
    },
    async serveAlone(model, own = {}) {
      return (alone = await startService({ ...overrides, ...own, model }));
    },
  };
}

/** Active runs would call the model of the next test. */
async function cancelAll({ context }: RunningService): Promise<void> {
  const runs = await context.queries.list({ limit: 200, offset: 0 });
  const open = runs.filter(({ status }) => status !== 'completed' && status !== 'failed');
  await Promise.all(
    open.map(({ id }) =>
      context.registry.cancel(id).catch((error: unknown) => {
        if (!(error instanceof RunFinished)) throw error;
      }),
    ),
  );
}
