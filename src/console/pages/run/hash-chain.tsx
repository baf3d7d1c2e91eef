/** Checks in the browser, as events arrive, that the record is consistent: nothing in it was changed without new hashes. */
import { useSignal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Verification } from '../../../generated/schemas.js';
import type { ChainResult } from '../../record/chain.js';
import { ChainCheck } from '../../record/chain.js';
import { countOf } from '../../record/counts.js';
import { CopyButton } from '../../ui/clipboard.js';
import { Badge } from '../../ui/controls.js';
import { useLoaded } from '../../ui/loaded.js';
import { errorText } from '../../ui/states.js';
import type { RunStore } from './store.js';

/** WebCrypto, or null on plain HTTP from another host. */
const subtle = 'subtle' in window.crypto ? window.crypto.subtle : null;

/** Number of unchecked events up to which the badge does not show “Checking”. */
const BEHIND = 100;

/** The result so far, or null if the browser cannot check. */
function useChain(store: RunStore): ReadonlySignal<ChainResult | null> {
  const check = useMemo(() => (subtle === null ? null : new ChainCheck(subtle)), [store]);
  const result = useSignal(check?.result ?? null);
  const { value: head } = store.head;
  useEffect(() => {
    if (check === null) return;
    let isUnmounted = false;
    void check.check(store.record.events).then((found) => {
      if (!isUnmounted) result.value = found;
    });
    return () => {
      isUnmounted = true;
    };
  }, [check, head]);
  return result;
}

export function HashChain({ store }: { readonly store: RunStore }) {
  const { value: result } = useChain(store);
  return (
    <section class="hash-chain" aria-label="Record">
      {result === null ? <ServiceVerification store={store} /> : <Found result={result} count={store.head.value + 1} />}
    </section>
  );
}

function Found({ result, count }: { readonly result: ChainResult; readonly count: number }) {
  const { checked, firstDifference, headHash } = result;
  if (firstDifference !== null) {
    return (
      <div role="alert" class="stack">
        <div class="row">
          <Badge tone="bad">Record damaged</Badge>
          <span class="break">
            Event {firstDifference.seq} is invalid: {firstDifference.what}. The {countOf(checked, 'event')} before it
            are consistent.
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
          <Badge tone="good">Record consistent</Badge>
        )}
        <span class="small">{countOf(checked, 'event')} checked in this browser</span>
      </div>
      <HeadHash hash={headHash} />
    </>
  );
}

/** The service's own verification, if the browser cannot check. */
function ServiceVerification({ store: { source } }: { readonly store: RunStore }) {
  const { state } = useLoaded(`verify ${source.id}`, async (signal) => await source.verify?.(signal));
  const { value: found } = state;
  const verification = found.status === 'ready' ? (found.value ?? null) : null;
  return (
    <>
      <div class="row">
        <Badge tone="wait">Not checked in this browser</Badge>
        <span>Browsers check hashes only over HTTPS or on localhost.</span>
      </div>
      {found.status === 'failed' && <p class="small">{errorText(found.error)}</p>}
      {verification !== null && (
        <>
          <div class="row">
            <span class="break">Checked by the service: {verdict(verification)}</span>
          </div>
          <HeadHash hash={verification.head_hash} />
        </>
      )}
    </>
  );
}

/** The service's verification as text. */
export function verdict({ events, first_difference: difference }: Verification): string {
  return difference === null
    ? `${countOf(events, 'event')}, record consistent.`
    : `${countOf(events, 'event')} consistent, event ${difference.seq} is invalid: ${difference.what}`;
}

function HeadHash({ hash }: { readonly hash: string }) {
  return (
    <>
      <p class="small copied">
        <span class="muted nowrap">Head hash</span>
        <code class="clip" title={hash}>
          {hash}
        </code>
        <CopyButton name="Head hash" of={() => ({ text: hash })} />
      </p>
      <p class="small muted">Compare the head hash with one that you trust.</p>
    </>
  );
}
