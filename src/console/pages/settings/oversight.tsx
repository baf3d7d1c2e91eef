/** The decisions on paused runs as a file, for a compliance officer. */
import { useSignal } from '@preact/signals';
import { council } from '../../shell/council.js';
import { may } from '../../shell/session.js';
import { toastError } from '../../shell/toasts.js';
import { Button, TextBox } from '../../ui/controls.js';
import { Empty } from '../../ui/states.js';
import { save } from '../run/files.js';

export function Oversight() {
  const [from, to, isBusy] = [useSignal(''), useSignal(''), useSignal(false)];
  if (!may('audit')) {
    return (
      <Empty title="Your key does not show decisions">
        <p>A key with the scope audit saves who decided what on which draft.</p>
      </Empty>
    );
  }
  const saveAs = (format: 'csv' | 'json') => (): void => {
    isBusy.value = true;
    const days = { from: from.value || undefined, to: to.value || undefined };
    council.runs
      .oversight({ ...days, format })
      .then((bytes) => save(`oversight.${format}`, new Blob([new Uint8Array(bytes)])))
      .catch(toastError)
      .finally(() => (isBusy.value = false));
  };
  return (
    <section class="card stack" aria-label="Decisions">
      <p>
        One row for each decision on a paused run: who decided what, when they first had the draft before them, its
        digest, and whether they changed it.
      </p>
      <div class="row">
        <TextBox label="From (UTC)" type="date" value={from.value} onType={(day) => (from.value = day)} />
        <TextBox label="To (UTC)" type="date" value={to.value} onType={(day) => (to.value = day)} />
      </div>
      <div class="row">
        <Button tone="primary" disabled={isBusy.value} onClick={saveAs('csv')}>
          Download CSV
        </Button>
        <Button disabled={isBusy.value} onClick={saveAs('json')}>
          Download JSON
        </Button>
      </div>
    </section>
  );
}
