/** One attempt of a step: its end and its tool calls. */
import { attemptFailureText, nextActionText } from '../../../run/failure-texts.js';
import { documentName } from '../../../draft/sources.js';
import { lengthText } from '../../record/durations.js';
import { argumentsText } from '../../record/event-text.js';
import { inPageWords } from '../../record/page-words.js';
import type { Attempt } from '../../../run/history/history.js';
import { pageUrl } from '../../shell/router.js';
import { Button } from '../../ui/controls.js';
import type { RunStore } from './store.js';

interface AttemptProps {
  readonly store: RunStore;
  readonly attempt: Attempt;
  readonly isOnly: boolean;
}

/** An attempt: how it ended, and its tool calls. */
export function AttemptDetails({ store, attempt, isOnly }: AttemptProps) {
  const { attempt: number, started, delayMs, model, tools, toolCalls } = attempt;
  return (
    <section class="attempt stack" aria-label={`Attempt ${number}`}>
      {!isOnly && (
        <p class="row">
          <strong>Attempt {number}</strong>
          <span class="muted small">
            {model}
            {delayMs > 0 && `, after a wait of ${lengthText(delayMs)}`}
          </span>
          <Button slim tone="plain" onClick={() => store.goTo(started.seq)}>
            event {started.seq}
          </Button>
        </p>
      )}
      <AttemptEnd attempt={attempt} isOnly={isOnly} />
      {tools.length > 0 && <p class="small muted">Tools: {tools.join(', ')}</p>}
      {toolCalls.map((call) => (
        <ToolCall key={call.called.seq} store={store} call={call} />
      ))}
    </section>
  );
}

function AttemptEnd({ attempt: { ended }, isOnly }: Pick<AttemptProps, 'attempt' | 'isOnly'>) {
  switch (ended?.how) {
    case undefined:
      return null;
    case 'completed':
      return isOnly ? null : <p>Completed in {lengthText(ended.durationMs)}.</p>;
    case 'lost':
      return <p class="notice wait">Lost, because its instance stopped. The next attempt replaced it.</p>;
    case 'discarded':
      return <p class="notice">Discarded: its panel had enough answers and did not wait longer.</p>;
    case 'failed': {
      const { kind, message, fallbackTo } = ended.failure;
      const text = attemptFailureText(kind, fallbackTo);
      return (
        <div class="notice bad">
          <div class="stack grow break">
            <strong>{text?.what ?? message}</strong>
            {text !== null && <span class="small">{message}</span>}
            <span class="small">{inPageWords(`${nextActionText(ended.failure)} ${text?.advice ?? ''}`)}</span>
          </div>
        </div>
      );
    }
    default:
      return ended satisfies never;
  }
}

type Call = Attempt['toolCalls'][number];

function ToolCall({ store, call }: { readonly store: RunStore; readonly call: Call }) {
  const { tool, arguments: given, hits, error, durationMs } = call;
  return (
    <div class="tool-call stack">
      <p class="break">
        <strong>{tool}</strong> {argumentsText(given)}
        <span class="muted small"> in {lengthText(durationMs)}</span>
      </p>
      {error !== null && <p class="notice bad break">{error}</p>}
      {hits.length > 0 && (
        <ol class="stack tight">
          {hits.map((hit, index) => (
            <li key={index} class="break">
              <Hit {...{ store, hit }} />
              {hit.score !== null && <span class="muted small"> {hit.score.toFixed(2)}</span>}
            </li>
          ))}
        </ol>
      )}
      {hits.length === 0 && error === null && <p class="muted small">No results.</p>}
    </div>
  );
}

/** A chunk links to its page, a web result to its URL. */
function Hit({ store, hit }: { readonly store: RunStore; readonly hit: Call['hits'][number] }) {
  if ('url' in hit) {
    return /^https?:\/\//.test(hit.url) ? (
      <a href={hit.url} target="_blank" rel="noopener noreferrer">
        {hit.title}
      </a>
    ) : (
      <>{hit.title}</>
    );
  }
  const name = documentName(hit.document, store.documentNames.value.get(hit.document));
  const text = `${name}, page ${hit.page}, chunk ${hit.chunk + 1}`;
  if (!store.source.isLive) return <>{text}</>;
  return <a href={pageUrl(['documents', hit.document], { page: hit.page, chunk: hit.chunk })}>{text}</a>;
}
