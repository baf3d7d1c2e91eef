import { expect } from 'chai';
import { promptOf } from '../../src/audit/prompt.js';
import type { StepPrompt } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { nodeSystem } from '../../src/system/system.js';
import { readGolden, runEventsIn } from '../support/golden.js';

const { sha256 } = nodeSystem();

async function promptIn(
  events: readonly RunEvent[],
  at: { readonly step: number; readonly attempt?: number },
): Promise<StepPrompt> {
  const [first] = events;
  const runId = first?.type === 'RunRequested' ? first.data.runId : '';
  async function* recorded(): AsyncGenerator<RunEvent> {
    yield* events;
  }
  const found = await promptOf(runId, recorded(), { ...at, sha256 });
  if (typeof found === 'string') throw new Error(found);
  return found;
}

const goldenNamed = (name: string): readonly RunEvent[] =>
  runEventsIn(readGolden().find((each) => each.name === `v1-${name}`)?.lines ?? []);

describe('The prompt of a step', () => {
  for (const { name, lines } of readGolden()) {
    it(`equals the sent prompt at each attempt of ${name}`, async () => {
      const events = runEventsIn(lines);
      for (const event of events) {
        // A council sends no prompt.
        if (event.type !== 'NodeStarted' || event.data.model === '') continue;
        const { step, attempt, node, inputHash } = event.data;
        const told = await promptIn(events, { step, attempt });
        expect(told).to.include({ seq: event.seq, step, attempt, node, prompt_hash: inputHash, verified: true });
      }
    });
  }

  it('belongs to the last attempt by default', async () => {
    const events = goldenNamed('failure-after-retries');
    const attempts = events.flatMap((event) => (event.type === 'NodeStarted' ? [event.data] : []));
    const { step, attempt } = attempts.at(-1) ?? { step: -1, attempt: -1 };
    expect(attempt).to.be.greaterThan(1);
    expect(await promptIn(events, { step })).to.include({ attempt });
    expect(await promptIn(events, { step, attempt: 1 })).to.include({ attempt: 1 });
  });

  it('is not verified if the current code renders it differently, and contains the recorded inputs', async () => {
    const events = goldenNamed('fixed-graph').map((event) =>
      event.type === 'NodeStarted' ? { ...event, data: { ...event.data, inputHash: 'f'.repeat(64) } } : event,
    );
    const told = await promptIn(events, { step: 3 });
    expect(told).to.include({ verified: false, prompt_hash: 'f'.repeat(64) });
    expect(told.inputs.current_draft).to.equal('First draft');
    expect(told.inputs.feedback_history).to.have.lengthOf(1);
  });
});
