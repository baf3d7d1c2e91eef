/** The final output of a run as a tree, to copy and to save. */
import { CopyButton } from '../../ui/clipboard.js';
import { Button } from '../../ui/controls.js';
import { Icon } from '../../ui/icon.js';
import { JsonTree } from '../../ui/json-tree.js';
import { fileName, save } from './files.js';
import type { RunStore } from './store.js';

/** Shows nothing at events before the end, and of a run without a schema. */
export function FinalOutput({ store }: { readonly store: RunStore }) {
  const { finalOutput: output } = store.snapshot.value ?? {};
  if (output === undefined) return null;
  const text = JSON.stringify(output, null, 2);
  const download = (): void =>
    save(fileName(store.summary.value?.topic ?? '', 'json'), new Blob([text], { type: 'application/json' }));
  return (
    <section class="card final-output" aria-labelledby="final-output">
      <div class="row spread">
        <h2 id="final-output">Output</h2>
        <div class="row">
          <CopyButton of={() => ({ text })}>
            <Icon name="copy" /> Copy JSON
          </CopyButton>
          <Button slim onClick={download}>
            <Icon name="download" /> Download .json
          </Button>
        </div>
      </div>
      <JsonTree value={output} label="Output" />
      {/* Paper has no parts to open. */}
      <pre class="on-paper">{text}</pre>
    </section>
  );
}
