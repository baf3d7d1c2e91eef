import { expect } from 'chai';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { Graph, GraphNode } from '../../src/generated/schemas.js';
import { childrenUnderWay } from '../../src/run/children/children.js';
import { runStream } from '../../src/run/events.js';
import { failureOf, isFinished, openPauseOf } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { graphOf, graphWith } from '../support/given.js';
import { decision, pausedBefore } from '../support/god-run.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { runWhen } from '../support/run-when.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

const { uuid } = nodeSystem();

/** A council with a run for each of three items, and a node beside it. */
function graphOfParts(node: Partial<GraphNode> = {}): Graph {
  const council = { id: 'part', name: 'Part', version: 1, graph: graphOf('write') };
  const parts = {
    id: 'parts',
    role: 'council',
    council,
    forEach: 'lines',
    onError: 'fail',
    topic: '{{item}}',
  } as const;
  return graphWith([{ id: 'plan' }, { ...parts, ...node }, { id: 'beside' }], graphOf('plan -> parts, beside').edges);
}

describe('A run that is killed after the runs of its council were cancelled, and before its own end', () => {
  const dirs: TempDir[] = [];
  afterEach(() => {
    for (const dir of dirs.splice(0)) dir.remove();
  });

  interface Killed {
    readonly godMode?: boolean;
    readonly node?: Partial<GraphNode>;
    /** Ends the run once all its runs are under way. */
    readonly end: (engine: TestEngine, runId: string, model: ScriptedModel) => unknown;
  }

  /** The failures of the run and of the runs of its council, after another start. */
  async function endsAfterKill({ godMode = false, node, end }: Killed) {
    const dir = tempDir();
    dirs.push(dir);
    const runId = uuid();
    const model = scriptedModel(({ promptInput: { label } }) =>
      label === 'Plan' ? { text: '- One\n- Two\n- Three' } : 'hold',
    );
    let isKilled = false;
    let reached = (): void => undefined;
    const isReached = new Promise<void>((resolve) => (reached = resolve));
    const decorate = (log: EventLog): EventLog =>
      changedLog(log, {
        append: (stream, events, expected) => {
          if (isKilled || stream !== runStream(runId) || events.at(-1)?.type !== 'RunFailed')
            return log.append(stream, events, expected);
          reached();
          return Promise.reject(new LogUnavailable());
        },
      });
    const first = await openTestEngine({ path: dir.path, model, decorate });
    await first.recover();
    await first.registry.start(runRequest(runId, { graph: graphOfParts(node), godMode }));
    if (godMode)
      for (const nodes of [['plan'], ['parts', 'beside']]) {
        await pausedBefore(first, runId, ...nodes);
        await first.registry.decidePause(runId, decision('approve', { keyHash: nodes.join() }));
      }
    await model.called(godMode ? 2 : 5);
    const parent = await runWhen(first, runId, (run) => childrenUnderWay(run).length === 3);
    const children = childrenUnderWay(parent).map(({ child }) => child.runId);
    for (const child of children)
      await runWhen(first, child, (run) => (godMode ? openPauseOf(run) !== null : run.progress.frontier.length > 0));
    Promise.resolve(end(first, runId, model)).catch(() => undefined);
    await isReached;
    isKilled = true;
    await first.log.close();
    await first.stop();

    const second = await openTestEngine({ path: dir.path, model });
    await second.recover();
    const failureIn = async (id: string) => failureOf(await runWhen(second, id, isFinished));
    const failure = await failureIn(runId);
    const ofChildren = await Promise.all(children.map(failureIn));
    for (const id of [runId, ...children]) await checkRecord(second.log, id);
    expect(factsOf(await recordOf(second.log, runId), 'ChildEnded').map(({ child }) => child)).to.have.members(
      children,
    );
    expect(second.faults).to.deep.equal([]);
    await second.stop();
    return { failure, ofChildren, runId };
  }

  const cancel = (engine: TestEngine, runId: string): Promise<unknown> => engine.registry.cancel(runId, 'ann');
  const failHeld =
    (label: string, topic?: string) =>
    (_: TestEngine, __: string, { held }: ScriptedModel) =>
      held
        .find(({ request: { promptInput: at } }) => at.label === label && (topic === undefined || at.topic === topic))
        ?.fail(new Error('no answer'));

  const besideFailed = { kind: 'node_failed', error: 'Node "beside": no answer', node: 'beside' } as const;
  const siblingFailed = {
    kind: 'node_failed',
    error: 'Node "parts": Run 1 ("Two") failed: Node "write": no answer',
    node: 'parts',
  } as const;
  const byUser = { kind: 'cancelled', error: 'Cancelled by the user', node: null, actor: 'ann' } as const;

  for (const { name, expected, ...killed } of [
    { name: 'the user has cancelled it', expected: byUser, end: cancel },
    { name: 'the user has cancelled it in God Mode', expected: byUser, end: cancel, godMode: true },
    { name: 'another node has failed', expected: besideFailed, end: failHeld('Beside') },
    {
      name: 'another node has failed, and it leaves out runs that fail',
      expected: besideFailed,
      end: failHeld('Beside'),
      node: { onError: 'skip' } as const,
    },
    { name: 'another node has failed in God Mode', expected: besideFailed, end: failHeld('Beside'), godMode: true },
    { name: 'one of its runs has failed', expected: siblingFailed, end: failHeld('Write', 'Two') },
  ])
    it(`ends for its own cause: ${name}`, async () => {
      const { failure, ofChildren, runId } = await endsAfterKill(killed);
      expect(failure).to.deep.include(expected);
      const { kind, error, node } = expected;
      const own = ofChildren.filter((each) => each?.kind === 'cancelled');
      expect(own).to.have.lengthOf(expected === siblingFailed ? 2 : 3);
      for (const each of own)
        expect(each).to.deep.include({
          error: `Cancelled with its parent run: ${error}`,
          cause: { runId, kind, error, node },
        });
    });
});
