import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BlueprintCreate } from '../../src/generated/schemas.js';
import { approvePath } from '../support/god-run.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK } from '../support/soak.js';

const COUNCIL: BlueprintCreate = {
  id: 'council',
  name: 'Council',
  nodes: [{ id: 'write' }, { id: 'judge', type: 'critic' }, { id: 'left' }, { id: 'right' }],
  edges: [
    { source: 'write', target: 'judge' },
    { source: 'judge', target: 'write', type: 'conditional', condition: 'rework' },
    { source: 'judge', target: 'left', type: 'conditional', condition: 'approve' },
    { source: 'write', target: 'right' },
  ],
};
/** A council with an invalid condition, whose runs fail at once. */
const BROKEN: BlueprintCreate = {
  id: 'broken',
  name: 'Broken',
  nodes: [{ id: 'write' }, { id: 'end' }],
  edges: [{ source: 'write', target: 'end', type: 'conditional', condition: 'score >' }],
};

/** Rounds of runs of all kinds. */
const ROUNDS = IS_SOAK ? 3 : 1;

describe('A service with deleted read models', () => {
  it('answers every GET byte for byte the same', async () => {
    const dir = tempDir();
    let service = await serve(dir.path);
    const runIds = await runsOfAllKinds(restClient(service.url));
    // An orderly stop adds the last leaves to the ledger and signs a checkpoint, which `verify` shows.
    await service.stop();
    service = await serve(dir.path);
    const told = await answersOf(service, runIds);
    const kinds = new Set([...told.values()].flatMap((text) => /"status":"(\w+)"/.exec(text)?.[1] ?? []));
    expect([...kinds]).to.include.members(['completed', 'failed', 'paused']);
    for (const isDeleted of [false, true]) {
      await service.stop();
      if (isDeleted) rmSync(join(dir.path, 'views'), { recursive: true });
      service = await serve(dir.path);
      const again = await answersOf(service, runIds);
      for (const [path, text] of told) expect(again.get(path), path).to.equal(text);
    }
    await service.stop();
    dir.remove();
  });
});

function serve(dataDir: string): Promise<RunningService> {
  return startService({ dataDir, model: scriptedModel(councilScript([5, 9, 7, 8])) });
}

/** Runs of the fixed graph and of blueprints, with and without God Mode, which wait or have ended. */
async function runsOfAllKinds(rest: RestClient): Promise<readonly string[]> {
  for (const body of [COUNCIL, BROKEN]) rest.read(await rest.post('/api/councils/', body), 201, 'blueprint.json');
  const startOf = async (id: string, godMode: boolean): Promise<string> => {
    const body = { input_topic: `${id} ${godMode}`, god_mode: godMode };
    return rest.read(await rest.post(`/api/councils/${id}/run`, body), 202, 'run-start.json').run_id;
  };
  const ended = async (runId: string): Promise<string> => (await rest.until(runId, isOver)).run_id;
  const paused = async (runId: string): Promise<string> =>
    (await rest.until(runId, (run) => run.paused === true)).run_id;
  const decide = async (runId: string, body: object): Promise<void> =>
    void rest.read(await rest.post(approvePath(runId), body), 200, 'run-result.json');

  const runIds: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    runIds.push(await ended(await rest.start(`fixed ${round}`)));
    runIds.push(await ended(await startOf('council', false)));
    runIds.push(await ended(await startOf('broken', false)));
    const [waiting, rejected, changed, cancelled] = [
      await paused(await startOf('council', true)),
      await paused(await startOf('council', true)),
      await paused(await startOf('council', true)),
      await paused(await startOf('council', true)),
    ];
    await decide(rejected, { action: 'reject' });
    await decide(changed, { action: 'modify', modified_state: { current_draft: 'Mine', input_topic: 'Other' } });
    await paused(changed);
    await rest.post(`/api/councils/run/${cancelled}/cancel`);
    runIds.push(waiting, rejected, changed, cancelled);
  }
  return runIds;
}

async function answersOf({ url }: RunningService, runIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const rest = restClient(url);
  const ofRun = (runId: string): readonly string[] => [
    ...[`/api/councils/run/${runId}`, `/api/councils/run/${runId}/state`],
    ...['', '/events', '/events?from=2&limit=3', '/state', '/state?at=2', '/verify'].map(
      (path) => `/api/runs/${runId}${path}`,
    ),
  ];
  const lists = ['/api/runs/', '/api/runs/?limit=3&offset=2', '/api/councils/', '/api/councils/?limit=1&offset=1'];
  const others = [
    '/api/councils/council',
    '/api/councils/broken',
    '/api/openapi.json',
    '/api/health',
    '/api/health/ready',
  ];
  const answers = new Map<string, string>();
  for (const path of [...runIds.flatMap(ofRun), ...lists, ...others]) {
    const { status, text, headers } = await rest.get(path);
    answers.set(path, `${status} ${headers.get('ETag') ?? ''} ${text}`);
    const lines =
      path.endsWith('/events') && (await rest.send('GET', path, { headers: { Accept: 'application/x-ndjson' } }));
    if (lines !== false) answers.set(`${path} as lines`, lines.text);
  }
  return answers;
}
