/**
 * A service with three days of data, made with the offline model, for screenshots and tests of whole pages. Ids, times and
 * texts are the same each time, except for concurrent events.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { CouncilClient } from '../../src/client/client.js';
import type { BlueprintCreate, Run, StateOverride } from '../../src/client/client.js';
import { ModelFailed } from '../../src/errors.js';
import { offlineModel } from '../../src/models/offline.js';
import type { LanguageModel } from '../../src/models/port.js';
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { present } from '../../src/system/element.js';
import { ALL_SCOPES } from './keys.js';
import type { RunningService } from './running-service.js';
import { startService } from './running-service.js';
import { seededRandom } from './seeded-random.js';
import { pdfWith } from './upload-client.js';

/** The time of the screenshots. */
export const NOW = '2026-03-12T09:30:00.000Z';

export interface LivedInService extends RunningService {
  /** Keys of its users; `eve` may only read. */
  readonly keys: { readonly ann: string; readonly ben: string; readonly eve: string };
  /** Ids of the runs that tests and screenshots show. */
  readonly runs: {
    readonly built: string;
    readonly guided: string;
    readonly fork: string;
    readonly paused: string;
    readonly live: string;
    readonly failed: string;
  };
  readonly blueprint: string;
  readonly document: string;
  /** Continues the draft of the live run; its listeners receive the new text. */
  write(): void;
}

const LIVE_TOPIC = 'A skate park by the river';
const STUMBLING_TOPIC = 'Should our town build a public sauna?';

const TOWN: BlueprintCreate = {
  id: 'town-council',
  name: 'Town council',
  nodes: [
    {
      id: 'scout',
      label: 'Scout',
      systemPrompt: 'Find what the town knows already.',
      tools: { pdfReader: true },
      position: { x: 0, y: 90 },
    },
    { id: 'friend', label: 'Friend', systemPrompt: 'Say what speaks for it.', position: { x: 230, y: 0 } },
    { id: 'sceptic', label: 'Sceptic', systemPrompt: 'Say what speaks against it.', position: { x: 230, y: 180 } },
    { id: 'moderator', label: 'Moderator', systemPrompt: 'Bring both sides together.', position: { x: 460, y: 90 } },
    {
      id: 'reviewer',
      label: 'Reviewer',
      type: 'critic',
      systemPrompt: 'Is it fair, and can it be done?',
      position: { x: 690, y: 90 },
    },
    {
      id: 'editor',
      label: 'Editor',
      systemPrompt: 'Make it a page that everybody can read.',
      position: { x: 970, y: 90 },
    },
  ],
  edges: [
    { source: 'scout', target: 'friend' },
    { source: 'scout', target: 'sceptic' },
    { source: 'friend', target: 'moderator' },
    { source: 'sceptic', target: 'moderator' },
    { source: 'moderator', target: 'reviewer' },
    { source: 'reviewer', target: 'moderator', type: 'conditional', condition: 'rework' },
    { source: 'reviewer', target: 'editor', type: 'conditional', condition: 'score >= 8' },
  ],
};

const LETTER: BlueprintCreate = {
  id: 'letter',
  name: 'Letter to the residents',
  nodes: [
    { id: 'writer', label: 'Writer', systemPrompt: 'Write a friendly letter of one page.' },
    { id: 'mayor', label: "Mayor's office", systemPrompt: 'Check every number in it.' },
  ],
  edges: [{ source: 'writer', target: 'mayor' }],
  approvals: { by: ['ann', 'ben'], quorum: 2, deadline: { after_ms: 172_800_000, then: 'reject' } },
};

const BROKEN: BlueprintCreate = {
  id: 'night-desk',
  name: 'Night desk',
  nodes: [
    { id: 'writer', label: 'Writer' },
    { id: 'judge', label: 'Judge', type: 'critic' },
  ],
  edges: [
    { source: 'writer', target: 'judge' },
    { source: 'judge', target: 'writer', type: 'conditional', condition: 'score < 4' },
  ],
};

const PAPERS: readonly (readonly [string, readonly string[]])[] = [
  [
    'Bathing and health, report 2025.pdf',
    [
      'Regular sauna bathing lowers blood pressure and helps people to sleep. Of those asked, two in three would come once a week if a public sauna were within a walk of twenty minutes. The town has no such place; the nearest is in the next valley, forty minutes by bus.',
      'Running a small public sauna costs about 96,000 a year: half of it is heat, a third is staff. Where waste heat of the dairy is used, as in the two towns we visited, the cost falls by a quarter. Entry of 6 covers the rest at fifty guests a day.',
      'What may go wrong: in summer few people come, and neighbours fear noise in the evening. Both towns close at nine and open the garden to families in July and August.',
    ],
  ],
  [
    'Traffic count, old town.pdf',
    [
      'Between seven and eight in the morning 412 bicycles and 286 cars pass the bridge gate. On Saturdays the cars are twice as many, most of them looking for a place to park.',
      'A bicycle street would take eleven parking places from the east side. Shops there have 34 places behind the houses, of which a third stand empty at noon.',
    ],
  ],
  [
    'Library statutes.pdf',
    [
      'The library opens on Tuesday to Saturday. The council may open it on Sundays when two members of staff agree to it in writing.',
    ],
  ],
  ['Map of the river bank (scan).pdf', []],
];

/** @param seed of its random values */
export async function startLivedInService(seed = 1): Promise<LivedInService> {
  const story = storyOf(seed);
  const service = await startService({ system: story.system, model: storyModel(story) });
  const clientOf = (key?: string): CouncilClient => new CouncilClient({ url: service.url, key, webSocket: WebSocket });
  story.at(-72);
  const ann = (await clientOf().keys.add({ name: 'ann', scopes: ALL_SCOPES })).key;
  const admin = clientOf(ann);
  const ben = (await admin.keys.add({ name: 'ben', scopes: ['read', 'run', 'approve'] })).key;
  const eve = (await admin.keys.add({ name: 'eve', scopes: ['read'] })).key;
  const listenTo = async (runId: string): Promise<void> => {
    const headers = { Authorization: `Bearer ${ann}` };
    const url = `${service.url.replace('http', 'ws')}/ws/council/${runId}?events=all`;
    await once(new WebSocket(url, { headers }), 'message');
  };
  const town = { story, ann: admin, ben: clientOf(ben), listenTo };
  const document = await fillDocuments(town);
  await fillBlueprints(town);
  const runs = await fillRuns(town);
  story.at(0);
  return { ...service, keys: { ann, ben, eve }, runs, blueprint: 'town-council', document, write: () => story.write() };
}

interface Town {
  readonly story: Story;
  readonly ann: CouncilClient;
  readonly ben: CouncilClient;
  /** Resolves once a run has a listener for its drafts. */
  listenTo(runId: string): Promise<void>;
}

async function fillDocuments({ story, ann }: Town): Promise<string> {
  const ids: string[] = [];
  for (const [filename, pages] of PAPERS) {
    story.pass(9 * 60_000);
    const pdf = pages.length === 0 ? pdfWith([]) : pdfWith(...pages.map(linesOf));
    await ann.documents.upload(new Blob([new Uint8Array(pdf)]), { filename });
    ids.push(createHash('sha256').update(pdf).digest('hex'));
  }
  return present(ids[0], 'document');
}

async function fillBlueprints({ story, ann }: Town): Promise<void> {
  story.at(-70);
  await ann.blueprints.create(BROKEN);
  await ann.blueprints.create(LETTER);
  const { nodes } = await ann.blueprints.create(TOWN);
  story.at(-69);
  const bolder = nodes.map((node) =>
    node.id === 'sceptic' ? { ...node, systemPrompt: 'Say what speaks against it, and what it costs.' } : node,
  );
  await ann.blueprints.update('town-council', { nodes: bolder });
  story.at(-68);
  await ann.blueprints.update('town-council', { name: 'Council of the town', nodes: bolder });
}

async function fillRuns({ story, ann, ben, listenTo }: Town): Promise<LivedInService['runs']> {
  story.at(-60);
  const built = await ann.runs.start({ topic: STUMBLING_TOPIC });
  await built.result();
  story.at(-55);
  await (await ben.runs.start({ topic: 'Swimming lessons for every child' })).result();
  story.at(-50);
  const failed = await ben.runs.start({ topic: 'Night buses on Fridays', blueprint: 'night-desk' });
  await failed.result();
  story.at(-48);
  const guided = await ann.runs.start({
    topic: 'A bicycle street through the old town',
    blueprint: 'town-council',
    godMode: true,
  });
  const decisions: readonly Decision[] = [
    { by: ann, afterMin: 4 },
    { by: ben, afterMin: 38, comment: 'Both sides, please' },
    { by: ann, afterMin: 2 },
    { by: ann, afterMin: 140, comment: 'The bridge gate has to be named', change: { current_draft: EDITED } },
  ];
  await decided(story, guided, decisions);
  await story.approveAll(guided);
  await guided.result();
  story.at(-30);
  const fork = await ben
    .run(guided.id)
    .fork({ at: await pauseOf(guided, 1), changes: { input_topic: 'A bicycle street, but on Sundays alone' } });
  await story.approveAll(fork);
  await fork.result();
  story.at(-28);
  const deeper = await ann.run(fork.id).fork({
    at: await pauseOf(fork, 1),
    changes: { nodes: [{ id: 'sceptic', systemPrompt: 'Speak for the shops alone.' }] },
  });
  await story.approveAll(deeper);
  await deeper.result();
  story.at(-26);
  const roof = await ben.runs.start({
    topic: 'A roof of solar panels for the school',
    blueprint: 'town-council',
    godMode: true,
  });
  await decided(story, ann.run(roof.id), [{ by: ann, afterMin: 45 }]);
  await (await pauseIn(ann.run(roof.id), 1)).reject({ comment: 'The roof is to be mended first' });
  story.at(-25);
  const trees = await ann.runs.start({
    topic: 'Which trees for the market square?',
    blueprint: 'town-council',
    godMode: true,
  });
  await pauseIn(trees, 0);
  story.pass(70_000);
  await trees.cancel();
  story.at(-20);
  await (await ann.runs.start({ topic: 'A mobile doctor for the villages' })).result();
  story.at(-6.5);
  const letter = await ann.runs.start({
    topic: 'A letter to the residents about the new tariffs',
    blueprint: 'letter',
    godMode: true,
  });
  story.pass(11 * 60_000);
  await (await pauseIn(letter, 0)).approve({ comment: 'Good to go' });
  await (await pauseIn(ben.run(letter.id), 0)).approve();
  story.pass(7 * 60_000);
  await (await pauseIn(ben.run(letter.id), 1)).approve({ comment: 'I have checked the numbers' });
  story.at(-3);
  const paused = await ben.runs.start({
    topic: 'Open the library on Sundays',
    blueprint: 'town-council',
    godMode: true,
  });
  await decided(story, ben.run(paused.id), [
    { by: ben, afterMin: 6 },
    { by: ann, afterMin: 12 },
    { by: ben, afterMin: 3 },
  ]);
  await pauseIn(paused, 3);
  story.at(-0.5);
  await (await ben.runs.start({ topic: 'Free coffee for volunteers' })).result();
  story.at(-0.02);
  const live = await ann.runs.start({ topic: LIVE_TOPIC });
  // Only clients that listened before the call began receive its draft while it is written.
  await listenTo(live.id);
  story.letWrite();
  await story.isHeld;
  return { built: built.id, guided: guided.id, fork: fork.id, paused: paused.id, live: live.id, failed: failed.id };
}

const EDITED = `# A bicycle street through the old town

Four hundred bicycles pass the **bridge gate** every morning. A street of their own makes the way to school safe.

## Objections

- Eleven parking places are lost; a third of those behind the houses stand empty.
- On Saturdays the market needs its vans: they may drive in until nine.

## Next step

Close the street for six weeks after Easter, count again, and ask the shops.`;

interface Decision {
  readonly by: CouncilClient;
  readonly afterMin: number;
  readonly comment?: string;
  readonly change?: StateOverride;
}

async function decided(story: Story, { id }: Run, decisions: readonly Decision[]): Promise<void> {
  for (const [nth, { by, afterMin, comment, change }] of decisions.entries()) {
    const pause = await pauseIn(by.run(id), nth);
    story.pass(afterMin * 60_000);
    await (change === undefined ? pause.approve({ comment }) : pause.modify(change, { comment }));
  }
}

async function pauseIn(run: Run, nth: number): Promise<ReturnType<Run['pauseAt']>> {
  return run.pauseAt(await pauseOf(run, nth));
}

/** Waits for a pause of a run, counted from 0. Returns its `seq`. */
async function pauseOf(run: Run, nth: number): Promise<number> {
  let seen = 0;
  for await (const { type, seq } of run.events()) {
    if (type !== 'RunPaused') continue;
    if (seen === nth) return seq;
    seen += 1;
  }
  throw new Error(`Run ${run.id} ended before its pause ${nth}`);
}

interface Story {
  readonly system: System;
  /** Sets the clock to this many hours before the time of the screenshots. */
  at(hours: number): void;
  pass(ms: number): void;
  /** A number in [0, 1). */
  random(): number;
  approveAll(run: Run): Promise<void>;
  /** Resolves once a call to the model is held. */
  readonly isHeld: Promise<void>;
  /** @param write called when the held call must write more text */
  hold(write: () => void): void;
  write(): void;
  /** Resolves when the live run may begin. */
  readonly mayWrite: Promise<void>;
  letWrite(): void;
}

function storyOf(seed: number): Story {
  const node = nodeSystem();
  const random = seededRandom(seed);
  let nowMs = Date.parse(NOW);
  let ids = 0;
  let [held, letWrite, write] = [NOTHING, NOTHING, NOTHING];
  const isHeld = new Promise<void>((resolve) => (held = resolve));
  const mayWrite = new Promise<void>((resolve) => (letWrite = resolve));
  const pass = (ms: number): void => void (nowMs += ms);
  return {
    system: { ...node, now: () => new Date(nowMs).toISOString(), uuid: () => uuidOf(`${seed} ${(ids += 1)}`) },
    at: (hours) => (nowMs = Date.parse(NOW) + hours * 3_600_000),
    async approveAll(run) {
      for await (const { type, seq } of run.events()) {
        if (type !== 'RunPaused') continue;
        pass(60_000 + random() * 900_000);
        // An earlier pause is over.
        if ((await run.pause())?.seq === seq) await run.pauseAt(seq).approve();
      }
    },
    pass,
    random,
    isHeld,
    mayWrite,
    letWrite: () => letWrite(),
    write: () => write(),
    hold(writing) {
      write = writing;
      held();
    },
  };
}

const NOTHING = (): void => undefined;

/** A version-4 UUID. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The offline model, whose answers advance the clock. For one topic it stops in the middle of the second draft. */
function storyModel(story: Story): LanguageModel {
  const offline = offlineModel({ system: story.system });
  let stumbles = 1;
  return {
    ...offline,
    async ask(request, call) {
      const { topic, draft } = request.promptInput;
      story.pass(1_500 + story.random() * 9_000);
      if (topic === STUMBLING_TOPIC && request.answer === 'critique' && stumbles > 0) {
        stumbles -= 1;
        throw new ModelFailed('The model is overloaded', { kind: 'rate_limited', retryable: true });
      }
      if (topic === LIVE_TOPIC) await story.mayWrite;
      if (topic !== LIVE_TOPIC || draft === null || request.answer === 'critique')
        return await offline.ask(request, call);
      const { onToken, ...quiet } = request;
      const { text } = await offline.ask(quiet, call);
      const words = text.slice(0, text.length * 0.6).match(/\s*\S+/g);
      story.hold(() => words?.forEach((word) => onToken?.(word)));
      return await new Promise((_, reject) => {
        const end = (): void => reject(new ModelFailed('Aborted', { kind: 'aborted', retryable: true }));
        call.signal.addEventListener('abort', end);
      });
    },
  };
}

/** Lines as wide as a page. */
function linesOf(text: string): readonly string[] {
  return text.match(/.{1,88}(?:\s|$)/g)?.map((line) => line.trim()) ?? [];
}
