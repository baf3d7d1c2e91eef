/** The form that starts a run: in a dialog, and on the first screen of a service that has none yet. */
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { council } from '../../shell/council.js';
import { navigateFromHere, pageUrl } from '../../shell/router.js';
import { may, onRefused } from '../../shell/session.js';
import { Button, Check, Select, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import type { Council, StartFault, Wanted } from './start-run.js';
import { EXAMPLE, TOPICS, faultOf, startRun } from './start-run.js';

/** A topic as it is typed, and what is done with it, once. */
function useTopic(act: (topic: string) => Promise<void>) {
  const topic = useSignal('');
  const isBusy = useSignal(false);
  const fault = useSignal<StartFault | null>(null);
  async function submit(start = act): Promise<void> {
    if (isBusy.value) return;
    if (topic.value.trim() === '') {
      fault.value = { at: 'topic', text: 'Say what the council is to work on.' };
      return;
    }
    isBusy.value = true;
    fault.value = null;
    try {
      await start(topic.value);
    } catch (error) {
      onRefused(error);
      fault.value = faultOf(error);
    } finally {
      isBusy.value = false;
    }
  }
  return { topic, isBusy: isBusy.value, fault: fault.value, submit: (start = act) => void submit(start) };
}

/** Starts a run and goes to its page. */
async function startAndGo(wanted: Wanted, councils: readonly Council[]): Promise<void> {
  const go = navigateFromHere();
  go(pageUrl(['runs', await startRun(council, wanted, councils)]));
}

/** Where the topic is written, and below it what is wrong with the whole. */
function TopicField({ topic, fault, submit }: ReturnType<typeof useTopic>) {
  const element = useRef<HTMLElement | null>(null);
  // Where something is to be written, or to be mended.
  useEffect(() => element.current?.focus(), [fault]);
  return (
    <>
      <TextBox
        label="Topic"
        fault={fault?.at === 'topic' ? fault.text : null}
        element={(found) => (element.current = found)}
        rows={4}
        placeholder="A question, a brief, or a text to work on"
        value={topic.value}
        onType={(text) => (topic.value = text)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
      {fault?.at === 'form' && (
        <div class="notice bad" role="alert">
          {fault.text}
        </div>
      )}
    </>
  );
}

const CTRL_ENTER = <kbd aria-hidden="true">Ctrl ↵</kbd>;

export interface TopicDialogProps {
  readonly title: string;
  /** What its button says. */
  readonly verb: string;
  readonly start: (topic: string) => Promise<void>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** Asks what a council is to work on. */
export function TopicDialog({ title, verb, start, onClose, children }: TopicDialogProps) {
  const asked = useTopic(start);
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button tone="primary" disabled={asked.isBusy} onClick={() => asked.submit()}>
        {verb} {CTRL_ENTER}
      </Button>
    </>
  );
  return (
    <Dialog {...{ title, onClose, foot }}>
      <TopicField {...asked} />
      {children}
    </Dialog>
  );
}

const GOD_MODE = 'Waits before each member until you approve, change or reject.';

export interface StartDialogProps {
  /** To choose from: all that are saved, or the one that is meant. */
  readonly councils: readonly Council[];
  /** Null: it is chosen here. */
  readonly blueprint?: Council | null;
  readonly onClose: () => void;
}

export function StartDialog({ councils, blueprint = null, onClose }: StartDialogProps) {
  const chosen = useSignal(blueprint?.id ?? '');
  const godMode = useSignal(false);
  const isBuiltIn = chosen.value === '';
  const isGuided = godMode.value && !isBuiltIn;
  return (
    <TopicDialog
      title={blueprint === null ? 'Start a run' : `Start a run of “${blueprint.name}”`}
      verb="Start"
      onClose={onClose}
      start={(topic) => startAndGo({ topic, blueprint: chosen.value, godMode: isGuided }, councils)}
    >
      {blueprint === null && (
        <CouncilField value={chosen.value} councils={councils} onChange={(id) => (chosen.value = id)} />
      )}
      <div class="stack god-mode">
        <Check
          label="God Mode"
          checked={isGuided}
          disabled={isBuiltIn}
          onChange={(checked) => (godMode.value = checked)}
        />
        <span class="small muted">
          {GOD_MODE} {isBuiltIn && 'Not of the built-in council: choose another one.'}
        </span>
      </div>
    </TopicDialog>
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
      value={value}
      onChange={onChange}
      options={[
        ['', 'Built-in: master, critic, writer'],
        ...(!hasExample && may('author') ? [[EXAMPLE.id, EXAMPLE.name] as const] : []),
        ...councils.map(({ id, name }) => [id, name] as const),
      ]}
    />
  );
}

/** What a newcomer sees first: a topic is all it takes. */
export function FirstRun({ councils }: { readonly councils: readonly Council[] }) {
  const starting = (blueprint: string) => (topic: string) =>
    startAndGo({ topic, blueprint, godMode: blueprint !== '' }, councils);
  const asked = useTopic(starting(''));
  const hasExample = councils.some(({ id }) => id === EXAMPLE.id);
  return (
    <section class="first-run" aria-labelledby="first-run">
      <div class="stack">
        <h2 id="first-run">Give a council its first topic</h2>
        <p class="muted">
          A master writes a draft and a critic scores it from 0 to 10: below 8 it goes back with feedback. A writer
          polishes what passes.
        </p>
      </div>
      <TopicField {...asked} />
      <div class="row topics">
        <span class="small muted">Try:</span>
        {TOPICS.map((text) => (
          <Button key={text} slim onClick={() => (asked.topic.value = text)}>
            {text}
          </Button>
        ))}
      </div>
      <div class="ways">
        <Way text="It runs by itself to the final draft.">
          <Button tone="primary" disabled={asked.isBusy} onClick={() => asked.submit()}>
            Start the run {CTRL_ENTER}
          </Button>
        </Way>
        {(hasExample || may('author')) && (
          <Way text={GOD_MODE}>
            <Button disabled={asked.isBusy} onClick={() => asked.submit(starting(EXAMPLE.id))}>
              Start the example council in God Mode
            </Button>
          </Way>
        )}
      </div>
      <p class="small muted">Without a key for a model, an offline one answers by fixed rules.</p>
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
