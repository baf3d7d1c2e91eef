/** A run of a blueprint is started from a topic. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Blueprint } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { navigateFromHere, pageUrl } from '../../shell/router.js';
import { onRefused } from '../../shell/session.js';
import { Button, Check, Field } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { Failure } from '../../ui/states.js';

export interface StartDialogProps {
  readonly blueprint: Pick<Blueprint, 'id' | 'name'>;
  readonly onClose: () => void;
}

/** Starts a run of a saved blueprint and goes to it. */
export function StartDialog({ blueprint, onClose }: StartDialogProps) {
  const isGuided = useSignal(false);
  return (
    <TopicDialog
      title={`Start a run of “${blueprint.name}”`}
      verb="Start"
      onClose={onClose}
      start={async (topic) => {
        const go = navigateFromHere();
        const run = await council.runs.start({ topic, blueprint, godMode: isGuided.value });
        go(pageUrl(['runs', run.id]));
      }}
    >
      <Check
        label="God Mode: pause before each node, until somebody decides"
        checked={isGuided.value}
        onChange={(checked) => (isGuided.value = checked)}
      />
    </TopicDialog>
  );
}

export interface TopicDialogProps {
  readonly title: string;
  /** What its button says. */
  readonly verb: string;
  readonly start: (topic: string) => Promise<void>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** Asks what a council is to deliberate on. */
export function TopicDialog({ title, verb, start, onClose, children }: TopicDialogProps) {
  const topic = useSignal('');
  const isBusy = useSignal(false);
  const fault = useSignal<unknown>(null);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    isBusy.value = true;
    fault.value = null;
    try {
      await start(topic.value);
    } catch (error) {
      onRefused(error);
      fault.value = error;
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <Dialog {...{ title, onClose }}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <Field label="Topic" hint="What the council deliberates on">
          {(control) => (
            <textarea
              {...control}
              class="input"
              rows={4}
              required
              maxLength={10_000}
              value={topic.value}
              onInput={(event) => (topic.value = event.currentTarget.value)}
            />
          )}
        </Field>
        {children}
        {fault.value !== null && <Failure error={fault.value} />}
        <div class="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" disabled={isBusy.value || topic.value === ''}>
            {verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
