/** What a page shows while it has nothing to show: loading, empty, failed, cut off from the service. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Button } from './controls.js';
import { tellError } from './words.js';

/** Whether the service is waited for, which does not answer. */
export const isAway = signal(false);

/** Says so. Dialogs say it themselves: what lies behind them is neither seen nor read out. */
export function Away() {
  if (!isAway.value) return null;
  return (
    <div class="away" role="status">
      The service does not answer. What is shown here stays, and goes on when it is back.
    </div>
  );
}

export function Loading({ what, lines = 4 }: { readonly what: string; readonly lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={`Loading ${what}`}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} style={{ width: `${90 - ((line * 17) % 45)}%` }} />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <span class="grow break">{tellError(error)}</span>
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}
