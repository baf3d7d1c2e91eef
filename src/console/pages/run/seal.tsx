/** Whether the record that is looked at is whole and unchanged: checked here, in the browser, as its events come. */
import { useSignal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Verification } from '../../../generated/schemas.js';
import type { ChainResult } from '../../record/chain.js';
import { ChainCheck } from '../../record/chain.js';
import { countOf } from '../../record/counts.js';
import { Badge } from '../../ui/controls.js';
import { useLoaded } from '../../ui/loaded.js';
import { tellError } from '../../ui/states.js';
import type { RunStore } from './store.js';

/** WebCrypto; null where browsers do not give it: on plain HTTP off loopback. */
const subtle = 'subtle' in window.crypto ? window.crypto.subtle : null;

/** Events that come while others are checked, of which nothing is said. */
const BEHIND = 100;

/** What the check has found so far; null: nothing can be checked here. */
function useChain(store: RunStore): ReadonlySignal<ChainResult | null> {
  const check = useMemo(() => (subtle === null ? null : new ChainCheck(subtle)), [store]);
  const result = useSignal(check?.result ?? null);
  const { value: head } = store.head;
  useEffect(() => {
    if (check === null) return;
    let isOver = false;
    void check.check(store.record.events).then((found) => {
      if (!isOver) result.value = found;
    });
    return () => {
      isOver = true;
    };
  }, [check, head]);
  return result;
}

/** One line that says so, with the hash that stands for all of it. */
export function Seal({ store }: { readonly store: RunStore }) {
  const { value: result } = useChain(store);
  return (
    <section class="seal card" aria-label="Seal">
      {result === null ? <ServersWord store={store} /> : <Found result={result} count={store.head.value + 1} />}
    </section>
  );
}

function Found({ result, count }: { readonly result: ChainResult; readonly count: number }) {
  const { checked, firstDifference, headHash } = result;
  if (firstDifference !== null) {
    return (
      <div role="alert" class="stack">
        <div class="row">
          <Badge tone="bad">Chain broken</Badge>
          <span class="break">
            Event {firstDifference.seq} does not bear out: {firstDifference.what}. {countOf(checked, 'event')} before it
            do.
          </span>
        </div>
      </div>
    );
  }
  return (
    <>
      <div class="row">
        {checked === 0 || count - checked > BEHIND ? (
          <Badge tone="busy">Checking</Badge>
        ) : (
          <Badge tone="good">Chain whole</Badge>
        )}
        <span>{countOf(checked, 'event')} checked in this browser</span>
      </div>
      <HeadHash hash={headHash} />
    </>
  );
}

/** Where the browser cannot check, what the service finds of itself. */
function ServersWord({ store: { source } }: { readonly store: RunStore }) {
  const { state } = useLoaded(`verify ${source.id}`, async (signal) => await source.verify?.(signal));
  const { value: found } = state;
  const word = found.status === 'ready' ? (found.value ?? null) : null;
  return (
    <>
      <div class="row">
        <Badge tone="wait">Not checked here</Badge>
        <span>Browsers check hashes only over HTTPS or on localhost.</span>
      </div>
      {found.status === 'failed' && <p class="small">{tellError(found.error)}</p>}
      {word !== null && (
        <>
          <div class="row">
            <span class="break">The service says: {verdict(word)}</span>
          </div>
          <HeadHash hash={word.head_hash} />
        </>
      )}
    </>
  );
}

/** What the service finds of a record, in words. */
export function verdict({ events, first_difference: difference }: Verification): string {
  return difference === null
    ? `${countOf(events, 'event')}, chain whole.`
    : `${countOf(events, 'event')} bear out, event ${difference.seq} does not: ${difference.what}`;
}

function HeadHash({ hash }: { readonly hash: string }) {
  return (
    <p class="small muted">
      Head hash <code class="break">{hash}</code>
    </p>
  );
}
