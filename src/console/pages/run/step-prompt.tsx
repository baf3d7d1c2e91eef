/** The prompt of a step, which the service renders again. Its hash shows whether it equals the prompt that was sent. */
import type { StepPrompt as Sent } from '../../../generated/schemas.js';
import type { Execution } from '../../record/executions.js';
import { Badge } from '../../ui/controls.js';
import { useLoaded } from '../../ui/loaded.js';
import { LongText } from '../../ui/long-text.js';
import { WhenLoaded } from '../../ui/states.js';
import type { RunSource } from './source.js';
import type { RunStore } from './store.js';

export function StepPrompt({
  store: { source },
  work: { step, attempts },
}: {
  readonly store: RunStore;
  /** A step of a node or of a member. */
  readonly work: Pick<Execution, 'step' | 'attempts'>;
}) {
  const last = attempts.at(-1);
  if (last === undefined) return null;
  if (source.prompt === undefined) {
    return (
      <p class="small muted">
        Hash of the prompt <code class="break">{last.inputHash}</code>
      </p>
    );
  }
  const key = `prompt ${source.id} ${step} ${last.attempt}`;
  return <Asked name={key} ask={source.prompt} step={step} recorded={last.inputHash} />;
}

interface AskedProps {
  readonly name: string;
  readonly ask: NonNullable<RunSource['prompt']>;
  readonly step: number;
  /** The recorded hash. */
  readonly recorded: string;
}

function Asked({ name, ask, step, recorded }: AskedProps) {
  const sent = useLoaded(name, (signal) => ask(step, signal));
  return (
    <WhenLoaded of={sent} what="the prompt" lines={2}>
      {(found) => <Prompt sent={found} recorded={recorded} />}
    </WhenLoaded>
  );
}

function Prompt({ sent, recorded }: { readonly sent: Sent; readonly recorded: string }) {
  const { inputs, system, prompt, prompt_hash: hash, verified } = sent;
  const isSame = verified && hash === recorded;
  const texts: readonly (readonly [string, string])[] = [
    ['System prompt', system],
    ['User prompt', prompt],
    ['Input: topic', inputs.input_topic],
    ['Input: draft', inputs.current_draft ?? 'No draft yet.'],
    ...inputs.feedback_history.map((text, index) => [`Input: feedback ${index + 1}`, text] as const),
  ];
  return (
    <section class="stack" aria-label="Prompt">
      <div class="row">
        <h4>Prompt</h4>
        {isSame ? <Badge tone="good">as sent</Badge> : <Badge tone="wait">differs from the prompt sent</Badge>}
      </div>
      {texts.map(([title, text]) => (
        <details key={title}>
          <summary>{title}</summary>
          <LongText text={text} label={title} />
        </details>
      ))}
      <p class="small muted">
        {isSame ? 'Hash, as recorded:' : 'Hash of the prompt shown:'} <code class="break">{hash}</code>
      </p>
    </section>
  );
}
