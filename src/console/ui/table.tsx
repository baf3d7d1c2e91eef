/** A table whose first row names its columns. */
import type { ComponentChildren } from 'preact';

export interface TableProps {
  /** The names of the columns. An empty one is that of a column of buttons. */
  readonly heads: readonly string[];
  /** Those of the names that stand above numbers, at the right. Default: none. */
  readonly numbers?: readonly string[];
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ heads, numbers = [], children }: TableProps) {
  return (
    <table class="table">
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col" class={numbers.includes(head) ? 'numeric' : undefined}>
              {head === '' ? <span class="unseen">Actions</span> : head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
