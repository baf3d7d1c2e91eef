/** A service process that a test kills and starts again in the same folder. Its models are those of a fake server. */
import { present } from '../../src/system/element.js';
import type { FakeOpenAi } from './fake-openai.js';
import { fakeOpenAi } from './fake-openai.js';
import type { ServiceProcess } from './service-process.js';
import { startServiceProcess } from './service-process.js';
import type { TempDir } from './temp-dir.js';
import { tempDir } from './temp-dir.js';

export interface RestartedService {
  readonly server: FakeOpenAi;
  /** The data directory. */
  readonly path: string;
  start(): Promise<ServiceProcess>;
  kill(service: ServiceProcess): Promise<void>;
}

/** A new server and folder for each test of a block. Ends everything after it. */
export function restartedService(): RestartedService {
  let server: FakeOpenAi | null = null;
  let dir: TempDir | null = null;
  let service: ServiceProcess | null = null;

  beforeEach(async () => {
    [server, dir] = [await fakeOpenAi(), tempDir()];
  });
  afterEach(async () => {
    await service?.stop();
    await server?.stop();
    dir?.remove();
  });

  return {
    get server() {
      return present(server, 'server');
    },
    get path() {
      return present(dir, 'folder').path;
    },
    async start() {
      const environment = { OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: this.server.url, OPENAI_MODEL: 'gpt-5.4' };
      return (service = await startServiceProcess(this.path, { environment }));
    },
    async kill({ child, stop }) {
      child.kill('SIGKILL');
      await stop();
    },
  };
}
