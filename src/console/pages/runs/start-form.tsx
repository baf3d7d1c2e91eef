/** The form that starts a run: in a dialog, and on the first screen of a service that has none yet. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { council } from '../../shell/council.js';
import { navigateFromHere, pageUrl } from '../../shell/router.js';
import { may, onRefused } from '../../shell/session.js';
import { Button, Check, Field, Select } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import type { Council, StartFault, Wanted } from './start-run.js';
import { EXAMPLE, TOPICS, faultOf, startRun } from './start-run.js';

interface Starting {
  readonly isBusy: boolean;
  readonly fault: StartFault | null;
  start(wanted: Wanted): void;
}

/** Starts a run and goes to its page. */
function useStart(councils: readonly Council[]): Starting {
  const isBusy = useSignal(false);
  const fault = useSignal<StartFault | null>(null);
  async function start(wanted: Wanted): Promise<void> {
    if (isBusy.value) return;
    if (wanted.topic.trim() === '') {
      fault.value = { at: 'topic', text: 'Say what the council is to work on.' };
      return;
    }
    isBusy.value = true;
    fault.value = null;
    const go = navigateFromHere();
    try {
      go(pageUrl(['runs', await startRun(council, wanted, councils)]));
    } catch (error) {
      onRefused(error);
      fault.value = faultOf(error);
    } finally {
      isBusy.value = false;
    }
  }
  return { isBusy: isBusy.value, fault: fault.value, start: (wanted) => void start(wanted) };
}

interface TopicProps {
  readonly value: string;
  readonly fault: StartFault | null;
  readonly onInput: (topic: string) => void;
  readonly onStart: () => void;
}

function TopicField({ value, fault, onInput, onStart }: TopicProps) {
  const element = useRef<HTMLTextAreaElement>(null);
  // Where something is to be written, or to be mended.
  useEffect(() => element.current?.focus(), [fault]);
  return (
    <Field label="Topic" fault={fault?.at === 'topic' ? fault.text : null}>
      {(control) => (
        <textarea
          {...control}
          ref={element}
          class="input"
          rows={4}
          placeholder="A question, a brief, or a text to work on"
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) onStart();
          }}
        />
      )}
    </Field>
  );
}

function FormFault({ fault }: { readonly fault: StartFault | null }) {
  return fault?.at === 'form' ? (
    <div class="notice bad" role="alert">
      {fault.text}
    </div>
  ) : null;
}

const GOD_MODE = 'Pauses before each member works, and waits until you approve, change or reject.';

export function StartDialog({
  councils,
  onClose,
}: {
  readonly councils: readonly Council[];
  readonly onClose: () => void;
}) {
  const topic = useSignal('');
  const blueprint = useSignal('');
  const godMode = useSignal(false);
  const { isBusy, fault, start } = useStart(councils);
  const isBuiltIn = blueprint.value === '';
  const submit = (): void =>
    start({ topic: topic.value, blueprint: blueprint.value, godMode: godMode.value && !isBuiltIn });
  return (
    <Dialog
      title="Start a run"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" disabled={isBusy} onClick={submit}>
            Start <kbd>Ctrl ↵</kbd>
          </Button>
        </>
      }
    >
      <TopicField value={topic.value} fault={fault} onInput={(text) => (topic.value = text)} onStart={submit} />
      <CouncilField value={blueprint.value} councils={councils} onChange={(id) => (blueprint.value = id)} />
      <div class="stack god-mode">
        <Check
          label="God Mode"
          checked={godMode.value && !isBuiltIn}
          disabled={isBuiltIn}
          onChange={(checked) => (godMode.value = checked)}
        />
        <span class="small muted">
          {GOD_MODE} {isBuiltIn && 'Not of the built-in council: choose another one.'}
        </span>
      </div>
      <FormFault fault={fault} />
    </Dialog>
  );
}

interface CouncilFieldProps {
  /** Empty: the built-in one. */
  readonly value: string;
  readonly councils: readonly Council[];
  readonly onChange: (id: string) => void;
}

function CouncilField({ value, councils, onChange }: CouncilFieldProps) {
  const hasExample = councils.some(({ id }) => id === EXAMPLE.id);
  return (
    <Select
      label="Council"
      {...{ value, onChange }}
      options={[
        ['', 'Built-in: master, critic, writer'],
        ...(!hasExample && may('author') ? [[EXAMPLE.id, `${EXAMPLE.name} (is made for you)`] as const] : []),
        ...councils.map(({ id, name }) => [id, name] as const),
      ]}
    />
  );
}

/** What a newcomer sees first: a topic is all it takes. */
export function FirstRun({ councils }: { readonly councils: readonly Council[] }) {
  const topic = useSignal('');
  const { isBusy, fault, start } = useStart(councils);
  const begin = (blueprint: string): void => start({ topic: topic.value, blueprint, godMode: blueprint !== '' });
  const hasExample = councils.some(({ id }) => id === EXAMPLE.id);
  return (
    <section class="first-run" aria-labelledby="first-run">
      <div class="stack">
        <h2 id="first-run">Give a council its first topic</h2>
        <p class="muted">
          A master writes a draft, a critic scores it from 0 to 10, and below 8 it goes back with the critic’s feedback.
          A writer polishes what passes. You watch all of it.
        </p>
      </div>
      <TopicField
        value={topic.value}
        fault={fault}
        onInput={(text) => (topic.value = text)}
        onStart={() => begin('')}
      />
      <div class="row topics">
        <span class="small muted">Try:</span>
        {TOPICS.map((text) => (
          <Button key={text} slim onClick={() => (topic.value = text)}>
            {text}
          </Button>
        ))}
      </div>
      <FormFault fault={fault} />
      <div class="ways">
        <Way text="It runs by itself to the final draft.">
          <Button tone="primary" disabled={isBusy} onClick={() => begin('')}>
            Start the run <kbd>Ctrl ↵</kbd>
          </Button>
        </Way>
        {(hasExample || may('author')) && (
          <Way text="Master, critic and writer: before each the run waits until you approve, change or reject.">
            <Button disabled={isBusy} onClick={() => begin(EXAMPLE.id)}>
              {hasExample
                ? 'Start the example council in God Mode'
                : 'Make the example council and start it in God Mode'}
            </Button>
          </Way>
        )}
      </div>
      <p class="small muted">
        Without a key for a model, an offline stand-in answers: it needs no network, writes by fixed rules, and says so.
      </p>
    </section>
  );
}

function Way({ text, children }: { readonly text: string; readonly children: ComponentChildren }) {
  return (
    <div class="stack">
      {children}
      <span class="small muted">{text}</span>
    </div>
  );
}
