/** The bar for the selected runs: compare two, cancel or export all of them. */
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { countOf } from '../../record/counts.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { may } from '../../shell/session.js';
import { toast } from '../../shell/toasts.js';
import { Button } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';
import { ExportButton } from './export-button.js';
import type { RunList } from './run-list.js';
import { isOver } from './run-row.js';

export interface SelectionProps {
  readonly list: RunList;
  /** Ids of the selected runs. */
  readonly chosen: Signal<readonly string[]>;
}

export function Selection({ list, chosen }: SelectionProps) {
  const ids = chosen.value;
  const [a, b] = ids;
  if (a === undefined) return null;
  return (
    <div class="selection card" role="region" aria-label="Selected runs">
      <span class="grow" role="status">
        {countOf(ids.length, 'run')} selected
      </span>
      <Button tone="plain" onClick={() => (chosen.value = [])}>
        Clear
      </Button>
      <ExportButton ids={ids} format="csv" />
      <ExportButton ids={ids} format="ndjson" />
      {may('run') && <CancelButton list={list} chosen={chosen} />}
      {b !== undefined && ids.length === 2 && (
        <a class="button primary" href={pageUrl(['compare'], { a, b })}>
          Compare
        </a>
      )}
    </div>
  );
}

function CancelButton({ list, chosen }: SelectionProps) {
  const isAsked = useSignal(false);
  const isOpen = (id: string): boolean => list.rows.value.some((row) => row.peek().id === id && !isOver(row.value));
  const open = chosen.value.filter(isOpen);
  async function cancel(): Promise<void> {
    isAsked.value = false;
    const results = await Promise.allSettled(open.map((id) => council.run(id).cancel()));
    const failed = results.filter(({ status }) => status === 'rejected').length;
    const done = countOf(results.length - failed, 'run');
    toast(
      failed === 0 ? `Cancelled ${done}` : `Cancelled ${done}; ${failed} could not be cancelled`,
      failed === 0 ? 'good' : 'bad',
    );
    chosen.value = [];
  }
  if (open.length === 0) return null;
  return (
    <>
      <Button tone="danger" onClick={() => (isAsked.value = true)}>
        Cancel {countOf(open.length, 'run')}
      </Button>
      {isAsked.value && (
        <Confirm
          title={`Cancel ${countOf(open.length, 'run')}?`}
          verb="Cancel them"
          keep="Keep running"
          onConfirm={() => void cancel()}
          onClose={() => (isAsked.value = false)}
        >
          <p>Their events remain, and you can fork them.</p>
        </Confirm>
      )}
    </>
  );
}
