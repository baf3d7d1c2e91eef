/** A service whose names, topics, drafts and documents all contain hostile markup. */
import { CouncilClient } from '../../src/client/client.js';
import type { RunningService } from './running-service.js';
import { startService } from './running-service.js';
import { scriptedModel } from './scripted-model.js';
import { idOf, pdfWith } from './upload-client.js';

const HOSTILE = `<img src=x onerror="globalThis.stolen = 1"><script>globalThis.stolen = 1</script>`;

export interface HostileService extends RunningService {
  /** Paths of pages that show hostile texts. */
  readonly paths: readonly string[];
}

export async function startHostileService(): Promise<HostileService> {
  const critique = JSON.stringify({ score: 9, feedback: HOSTILE });
  const model = scriptedModel(({ answer }) => ({
    text: answer === 'critique' ? critique : `# ${HOSTILE}\n\n${HOSTILE}`,
  }));
  const service = await startService({ model });
  const council = new CouncilClient({ url: service.url });
  const { id } = await council.blueprints.create({
    id: 'hostile',
    name: HOSTILE,
    nodes: [
      { id: HOSTILE, label: HOSTILE, systemPrompt: HOSTILE },
      { id: 'judge', label: `Critic ${HOSTILE}`, type: 'critic' },
    ],
    edges: [
      { source: HOSTILE, target: 'judge', label: HOSTILE },
      { source: 'judge', target: HOSTILE, type: 'conditional', condition: HOSTILE },
    ],
  });
  const pdf = pdfWith([HOSTILE]);
  await council.documents.upload(new Blob([new Uint8Array(pdf)]), { filename: `${HOSTILE}.pdf` });
  const ended = await council.runs.start({ topic: HOSTILE });
  await ended.result();
  const sane = await council.blueprints.create({
    name: HOSTILE,
    nodes: [
      { id: 'writer', label: HOSTILE },
      { id: 'editor', label: HOSTILE },
    ],
    edges: [{ source: 'writer', target: 'editor' }],
  });
  const paused = await council.runs.start({ topic: HOSTILE, blueprint: sane, godMode: true });
  for await (const { type, seq } of paused.events()) {
    if (type !== 'RunPaused') continue;
    const pause = await paused.pause();
    if (pause?.state.current_state.current_draft !== null) break;
    await paused.pauseAt(seq).approve({ comment: HOSTILE });
  }
  const failed = await council.runs.start({ topic: HOSTILE, blueprint: id });
  await failed.result();
  return {
    ...service,
    paths: [
      ...['', `runs/${ended.id}`, `runs/${paused.id}`, `runs/${failed.id}`, `compare?a=${ended.id}&b=${paused.id}`],
      ...['inbox', 'blueprints', `blueprints/${id}`, 'documents?q=img', `documents/${idOf(pdf)}?page=1&chunk=0`],
    ],
  };
}
