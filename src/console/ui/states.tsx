/** What a page shows while it has nothing to show: loading, empty, failed, cut off from the service. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { CouncilError, ForbiddenError, InvalidError, UnreachableError } from '../../client/errors.js';
import { Button } from './controls.js';
import type { Resource } from './loaded.js';

/** Whether the service is waited for, which does not answer. */
export const isAway = signal(false);

/** Says so. Dialogs say it themselves: what lies behind them is neither seen nor read out. */
export function Away() {
  if (!isAway.value) return null;
  return (
    <div class="away" role="status">
      The service does not answer. This page goes on when it is back.
    </div>
  );
}

export function Loading({ what, lines = 4 }: { readonly what: string; readonly lines?: number | undefined }) {
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

export interface AwaitedProps<T> {
  readonly of: Resource<T>;
  /** What it is, as it is told while it loads. */
  readonly what: string;
  readonly lines?: number;
  readonly children: (value: T) => ComponentChildren;
}

/** What was asked for once it is there; before, that it loads, or why it could not be had. */
export function Awaited<T>({ of: { state, reload }, what, lines, children }: AwaitedProps<T>) {
  const { value: found } = state;
  if (found.status === 'loading') return <Loading what={what} lines={lines} />;
  if (found.status === 'failed') return <Failure error={found.error} onRetry={reload} />;
  return <>{children(found.value)}</>;
}

/** What a person is told of a failed call. */
export function tellError(error: unknown): string {
  if (error instanceof UnreachableError) return 'The service does not answer. It is tried again.';
  if (error instanceof ForbiddenError) return `This key may not do that: ${error.detail}`;
  if (error instanceof InvalidError && error.errors.length > 0) {
    return error.errors.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ');
  }
  if (error instanceof CouncilError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
