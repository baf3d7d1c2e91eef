import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startServiceProcess } from '../support/service-process.js';
import type { Blueprint } from '../../src/generated/schemas.js';
import { restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260102);
const CRASHES = IS_SOAK ? 40 : 2;
const AUTHORS = 12;
/** The most answers before a kill. */
const MOST_ANSWERS = IS_SOAK ? 200 : 60;

const COUNCILS = '/api/councils/';

/** A blueprint as its author knows it: the last answer, and the change without an answer. */
interface Known {
  readonly id: string;
  /** The version of the record, or null if the blueprint does not exist. */
  version: number | null;
  name: string;
  /** A change without an answer: the service may have made it or not. */
  open: { readonly version: number | null; readonly name: string } | null;
}

describe(`A service killed while blueprints change (SEED=${SEED})`, () => {
  it('neither loses nor repeats an acknowledged change, and lists all blueprints with kept and with deleted views', async () => {
    const random = seededRandom(SEED);
    const dir = tempDir();
    const shelf = Array.from({ length: AUTHORS }, (_, n): Known => ({
      id: `b${n}`,
      version: null,
      name: '',
      open: null,
    }));
    let all = 0;
    for (let crashes = 0; crashes < CRASHES; crashes += 1) {
      if (crashes % 2 === 1) rmSync(join(dir.path, 'views'), { recursive: true });
      const service = await startServiceProcess(dir.path);
      await expectKept(service.url, shelf);
      let left = 1 + Math.floor(random() * MOST_ANSWERS);
      all += left;
      const onAnswer = (): void => {
        left -= 1;
        if (left === 0) service.child.kill('SIGKILL');
      };
      await Promise.all(shelf.map((known) => changesUntilKilled(service.url, { known, onAnswer })));
      expect(left).to.be.at.most(0);
      await service.stop();
    }
    const last = await startService({ dataDir: dir.path, eventStore: null });
    await expectKept(last.url, shelf);
    await last.stop();
    dir.remove();
    expect(all).to.be.greaterThan(CRASHES * AUTHORS);
  });
});

/** Repeatedly creates, updates four times and deletes a blueprint, until a request gets no answer. */
async function changesUntilKilled(
  url: string,
  { known, onAnswer }: { readonly known: Known; readonly onAnswer: () => void },
): Promise<void> {
  const rest = restClient(url);
  for (let changes = 0; ; changes += 1) {
    const { id, version } = known;
    const next = version === null ? 1 : version === 5 ? null : version + 1;
    const name = `${id} at ${String(next)}, change ${changes}`;
    known.open = { version: next, name };
    try {
      const body = { id, name, nodes: [{ id: 'a' }] };
      if (version === null) rest.read(await rest.post(COUNCILS, body), 201, 'blueprint.json');
      else if (next === null) expect((await rest.send('DELETE', COUNCILS + id)).status).to.equal(204);
      else rest.read(await rest.send('PUT', COUNCILS + id, { body: { name } }), 200, 'blueprint.json');
    } catch (error) {
      // The error of fetch when the connection is cut or refused.
      if (error instanceof TypeError) return;
      throw error;
    }
    Object.assign(known, { version: next, name, open: null });
    onAnswer();
  }
}

/**
 * Checks that each blueprint equals the last answer or the unanswered change, and that the list has exactly the
 * blueprints found by id.
 */
async function expectKept(url: string, shelf: readonly Known[]): Promise<void> {
  const rest = restClient(url);
  const found: Blueprint[] = [];
  for (const known of shelf) {
    const reply = await rest.get(COUNCILS + known.id);
    const blueprint = reply.status === 404 ? null : rest.read(reply, 200, 'blueprint.json');
    const [version, name] = [blueprint?.version ?? null, blueprint?.name];
    const possible = [{ version: known.version, name: known.name }, ...(known.open === null ? [] : [known.open])];
    const kept = possible.find((each) => each.version === version && (version === null || each.name === name));
    expect(kept, `${known.id} at version ${String(version)}, of ${JSON.stringify(possible)}`).not.to.equal(undefined);
    Object.assign(known, kept, { open: null });
    if (blueprint !== null) found.push(blueprint);
  }
  const listed = rest.read(await rest.get(COUNCILS), 200, 'blueprint-list.json');
  expect(listed).to.have.deep.members(found);
}
