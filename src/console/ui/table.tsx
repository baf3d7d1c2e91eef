/** A table whose first row names its columns. */
import type { ComponentChildren } from 'preact';

export interface TableProps {
  /** The names of the columns. An empty one is that of a column of buttons. */
  readonly heads: readonly string[];
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ heads, children }: TableProps) {
  return (
    <table class="table">
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head === '' ? <span class="unseen">Actions</span> : head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
