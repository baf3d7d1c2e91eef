/** The decisions that are not yet recorded, each with a button that undoes it. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { UnreachableError } from '../../client/errors.js';
import { doneText } from '../record/decision-texts.js';
import { Button } from '../ui/controls.js';
import { serviceTime } from '../ui/time.js';
import { council, pendingApprovals } from './council.js';
import type { Underway } from './decisions.js';
import { Decisions } from './decisions.js';
import { reviewOf } from './reviews.js';
import { actor } from './session.js';
import { settings } from './settings.js';
import { toast, toastError } from './toasts.js';

/** The service may have recorded a decision whose answer was lost. */
const NO_ANSWER = 'The service did not answer. If the run still waits, decide again.';

/** The user's decisions. They outlast the page of the console on which they are made. */
export const decisions = new Decisions({
  client: council,
  approvals: pendingApprovals,
  notify: toast,
  onFault: (error, what) => toastError(error instanceof UnreachableError ? new Error(NO_ANSWER) : error, what),
  reviewOf,
  hasUndo: () => settings.peek().undo,
  actor: () => actor.peek(),
  now: () => Date.now(),
  serviceNow: () => serviceTime(),
  after(ms, act) {
    const timer = window.setTimeout(act, ms);
    return () => window.clearTimeout(timer);
  },
});

/** Sends waiting decisions when the user leaves: a hidden page may be closed without another event. Call once. */
export function sendBeforeLeaving(): void {
  const send = (): void => void decisions.sendAll();
  window.addEventListener('pagehide', send);
  document.addEventListener('visibilitychange', () => document.hidden && send());
}

export function UnderwayMessages() {
  return decisions.underway.value.map((each) => (
    <div key={each.key} class="toast">
      <UnderwayText underway={each} />
    </div>
  ));
}

/** What a decision does and when, and the button that undoes it. */
function UnderwayText({ underway: { key, decision, sentAtMs } }: { readonly underway: Underway }) {
  const text = doneText(decision, decision.effect);
  if (sentAtMs === null) return <span class="grow break">{text}. Sending…</span>;
  return (
    <>
      <span class="grow break">
        {text} <Countdown toMs={sentAtMs} />
      </span>
      <Button slim onClick={() => decisions.undo(key)}>
        Undo
      </Button>
    </>
  );
}

/** How often it is read, in milliseconds. */
const TICK_MS = 200;

/** The seconds to a time of the browser's clock. Screen readers read it once. */
function Countdown({ toMs }: { readonly toMs: number }) {
  const secondsLeft = (): number => Math.max(0, Math.ceil((toMs - Date.now()) / 1_000));
  const left = useSignal(secondsLeft());
  useEffect(() => {
    const timer = window.setInterval(() => (left.value = secondsLeft()), TICK_MS);
    return () => window.clearInterval(timer);
  }, [toMs]);
  return (
    <span class="numeric" aria-live="off">
      in {left.value} s
    </span>
  );
}
