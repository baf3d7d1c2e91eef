/** Test runs of the draft in the editor, with the offline model: started in a dialog, shown beside the graph. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { RunCompletedData, RunResult } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { Button, Status } from '../../ui/controls.js';
import { JsonTree } from '../../ui/json-tree.js';
import { Failure, Loading } from '../../ui/states.js';
import { MatterFields, useMatter } from '../runs/matter.js';
import { TopicDialog } from '../runs/start-form.js';
import { bodyOf } from './draft.js';
import type { Editor } from './store.js';

interface TrialDialogProps {
  readonly editor: Editor;
  readonly onStarted: (runId: string) => void;
  readonly onClose: () => void;
}

export function TrialDialog({ editor, onStarted, onClose }: TrialDialogProps) {
  const matter = useMatter();
  const start = (topic: string): Promise<void> =>
    matter.send(async (given) => {
      const run = await council.runs.tryBlueprint({ topic, blueprint: bodyOf(editor.draft.value), ...given });
      onStarted(run.id);
      onClose();
    });
  return (
    <TopicDialog title="Test without saving" verb="Start test run" start={start} onClose={onClose}>
      <p class="small muted">The offline model answers by fixed rules. The test shows the routes, not real texts.</p>
      <MatterFields of={matter} />
    </TopicDialog>
  );
}

/** What a test run does, and its draft and output at the end. */
export function TrialResult({ runId, onClose }: { readonly runId: string; readonly onClose: () => void }) {
  const result = useSignal<RunResult | null>(null);
  // The result has null also without an output.
  const output = useSignal<RunCompletedData['finalOutput']>(undefined);
  const fault = useSignal<unknown>(null);
  useEffect(() => {
    const abort = new AbortController();
    const run = council.run(runId);
    async function follow(): Promise<void> {
      result.value = await run.status({ signal: abort.signal });
      for await (const event of run.events({ signal: abort.signal })) {
        if (event.type === 'RunCompleted') output.value = event.data.finalOutput;
      }
      result.value = await run.status({ signal: abort.signal });
    }
    follow().catch((error: unknown) => {
      if (!abort.signal.aborted) fault.value = error;
    });
    return () => abort.abort();
  }, [runId]);
  const found = result.value;
  return (
    <section class="card stack close" aria-label="Test run">
      <div class="row spread">
        <h2>Test run</h2>
        <div class="row">
          <a class="button slim" href={pageUrl(['runs', runId])} target="_blank" rel="noreferrer">
            Open the run in a new tab
          </a>
          <Button slim tone="plain" onClick={onClose}>
            Close
          </Button>
        </div>
      </div>
      {fault.value !== null && <Failure error={fault.value} />}
      {found === null && fault.value === null && <Loading what="the test run" />}
      {found !== null && (
        <>
          <div role="status">
            <Status status={found.status} error={found.error} />
          </div>
          {found.error !== null && <p class="break">{found.error}</p>}
          {output.value !== undefined && <JsonTree value={output.value} label="Output" />}
          {found.final_draft !== null && (
            <section class="trial-draft" aria-label="Draft" tabIndex={0}>
              {found.final_draft}
            </section>
          )}
        </>
      )}
    </section>
  );
}
