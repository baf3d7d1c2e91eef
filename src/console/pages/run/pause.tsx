/** The open pause of a run. Its parts load with the first one. */
import { chunk, useChunk } from '../../ui/chunks.js';
import { Button } from '../../ui/controls.js';
import { WhenLoaded } from '../../ui/states.js';
import { decisions } from '../../shell/undo.js';
import type { OpenPauseProps } from './pause-panel.js';
import type { RunStore } from './store.js';

const pausePanel = chunk(async () => (await import('./pause-panel.js')).OpenPause);

export function PausePanel({ store }: { readonly store: RunStore }) {
  const { value: summary } = store.summary;
  const pause = summary?.now.pause ?? null;
  return (
    <>
      <LateDecisions runId={store.source.id} />
      {summary !== null && pause !== null && pause.decision === null && (
        <LoadedPanel key={pause.seq} {...{ store, summary, pause }} />
      )}
    </>
  );
}

function LoadedPanel(props: OpenPauseProps) {
  const panel = useChunk(pausePanel);
  return (
    <WhenLoaded of={panel} what="the decision" lines={3}>
      {(OpenPause) => <OpenPause {...props} />}
    </WhenLoaded>
  );
}

/** What happened instead of decisions on this run that came too late. */
function LateDecisions({ runId }: { readonly runId: string }) {
  const late = [...decisions.late.value].filter(([key]) => key.startsWith(`${runId} `));
  return late.map(([key, text]) => (
    <div key={key} class="notice wait">
      <span class="grow break">{text}</span>
      <Button slim onClick={() => decisions.dismiss(key)}>
        Dismiss
      </Button>
    </div>
  ));
}
