/** A service, and `council` commands beside it, for the tests of a block. */
import { join } from 'node:path';
import { present } from '../../src/system/element.js';
import type { ChildExit } from './child.js';
import type { CouncilBench } from './council-command.js';
import { councilBench } from './council-command.js';
import type { RestClient } from './rest-client.js';
import { restClient } from './rest-client.js';
import type { RunningService, ServiceOverrides } from './running-service.js';
import { startService } from './running-service.js';

export interface CouncilService {
  readonly bench: CouncilBench;
  /** Its data directory is in the folder of the bench. */
  readonly service: RunningService;
  readonly rest: RestClient;
  /** Runs a `council` command with the address of the service to its end. */
  ask(...words: readonly string[]): Promise<ChildExit>;
}

/** Starts the service before the tests of a block, and ends everything after them. */
export function councilService(overrides: ServiceOverrides = {}): CouncilService {
  let bench: CouncilBench | null = null;
  let service: RunningService | null = null;

  before(async () => {
    bench = councilBench();
    service = await startService({ ...overrides, dataDir: join(bench.path, 'service'), eventStore: null });
  });
  after(async () => {
    await service?.stop();
    await bench?.clear();
  });

  const address = (): string => present(service, 'service').url;
  return {
    get bench() {
      return present(bench, 'bench');
    },
    get service() {
      return present(service, 'service');
    },
    get rest() {
      return restClient(address());
    },
    ask: (...words) => present(bench, 'bench').council([...words, '--url', address()]),
  };
}
