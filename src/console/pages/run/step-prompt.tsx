/** What a step's model was sent, rendered anew by the service; its hash tells whether it is what was sent then. */
import type { StepPrompt as Sent } from '../../../generated/schemas.js';
import type { Execution } from '../../record/executions.js';
import { Badge } from '../../ui/controls.js';
import { useLoaded } from '../../ui/loaded.js';
import { Awaited } from '../../ui/states.js';
import type { RunSource, RunStore } from './store.js';

export function StepPrompt({
  store: { source },
  execution,
}: {
  readonly store: RunStore;
  readonly execution: Execution;
}) {
  const last = execution.attempts.at(-1);
  if (last === undefined) return null;
  if (source.prompt === undefined) {
    return (
      <p class="small muted">
        Hash of its prompt <code class="break">{last.inputHash}</code>
      </p>
    );
  }
  const key = `prompt ${source.id} ${execution.step} ${last.attempt}`;
  return <Asked name={key} ask={source.prompt} step={execution.step} recorded={last.inputHash} />;
}

interface AskedProps {
  readonly name: string;
  readonly ask: NonNullable<RunSource['prompt']>;
  readonly step: number;
  /** The hash that the events tell. */
  readonly recorded: string;
}

function Asked({ name, ask, step, recorded }: AskedProps) {
  const sent = useLoaded(name, (signal) => ask(step, signal));
  return (
    <Awaited of={sent} what="the prompt" lines={2}>
      {(found) => <Prompt sent={found} recorded={recorded} />}
    </Awaited>
  );
}

function Prompt({ sent, recorded }: { readonly sent: Sent; readonly recorded: string }) {
  const { inputs, system, prompt, prompt_hash: hash, verified } = sent;
  const isSame = verified && hash === recorded;
  const texts: readonly (readonly [string, string])[] = [
    ['Prompt: who it is', system],
    ['Prompt: what it was given', prompt],
    ['Input: topic', inputs.input_topic],
    ['Input: draft', inputs.current_draft ?? 'There was none yet.'],
    ...inputs.feedback_history.map((text, index) => [`Input: feedback ${index + 1}`, text] as const),
  ];
  return (
    <section class="stack" aria-label="Prompt">
      <div class="row">
        <h4>Prompt</h4>
        {isSame ? <Badge tone="good">as it was sent</Badge> : <Badge tone="wait">rendered otherwise then</Badge>}
      </div>
      {texts.map(([title, text]) => (
        <details key={title}>
          <summary>{title}</summary>
          <pre class="raw" tabIndex={0}>
            {text}
          </pre>
        </details>
      ))}
      <p class="small muted">
        {isSame ? 'Its hash is the recorded one' : 'The recorded hash is'} <code class="break">{hash}</code>
      </p>
    </section>
  );
}
