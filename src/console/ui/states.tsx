/** What a page shows without data: loading, empty, failed, or no answer from the service. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { CouncilError, ForbiddenError, InvalidError, UnreachableError } from '../../client/errors.js';
import { Button } from './controls.js';
import type { Resource } from './loaded.js';

/** Whether the service does not answer. */
export const isServiceDown = signal(false);

/** A note that the service does not answer. Dialogs show it too, because they hide the page from assistive technology. */
export function ServiceDown() {
  if (!isServiceDown.value) return null;
  return (
    <div class="away" role="status">
      The service does not answer. What you see may be out of date; this page continues when the service is back.
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
      <span class="grow break">{errorText(error)}</span>
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

export interface WhenLoadedProps<T> {
  readonly of: Resource<T>;
  /** Its name, for “Loading …”. */
  readonly what: string;
  readonly lines?: number;
  readonly children: (value: T) => ComponentChildren;
}

/** Shows data when it is loaded; before, a placeholder or the error. */
export function WhenLoaded<T>({ of: { state, reload }, what, lines, children }: WhenLoadedProps<T>) {
  const { value: found } = state;
  if (found.status === 'loading') return <Loading what={what} lines={lines} />;
  if (found.status === 'failed') return <Failure error={found.error} onRetry={reload} />;
  return <>{children(found.value)}</>;
}

/** The text for a failed call. */
export function errorText(error: unknown): string {
  if (error instanceof UnreachableError) return 'The service does not answer. The console tries again.';
  if (error instanceof ForbiddenError) return `This key may not do that: ${error.detail}`;
  if (error instanceof InvalidError && error.errors.length > 0) {
    return error.errors.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ');
  }
  if (error instanceof CouncilError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
