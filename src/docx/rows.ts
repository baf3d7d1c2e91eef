/** The rows of a table in a draft's tree. */
import type { DraftElement, DraftNode } from '../console/record/draft-tree.js';

/** Most columns of a table that Word opens. */
const MAX_COLUMNS = 63;

/** The rows of a table; the last cell of a row that is too long has the texts of the rest. */
export function rowsIn({ tag, children }: DraftElement): readonly DraftElement[] {
  return children.flatMap((each) => {
    if (typeof each === 'string') return [];
    return each.tag === 'tr' && tag !== 'tr' ? [{ ...each, children: cellsOf(each) }] : rowsIn(each);
  });
}

function cellsOf({ children }: DraftElement): readonly DraftNode[] {
  if (children.length <= MAX_COLUMNS) return children;
  const [last = '', ...rest] = children.slice(MAX_COLUMNS - 1);
  const texts = rest.flatMap((each) => [' | ', ...childrenOf(each)]);
  return [...children.slice(0, MAX_COLUMNS - 1), { tag: 'td', children: [...childrenOf(last), ...texts] }];
}

export function childrenOf(node: DraftNode): readonly DraftNode[] {
  return typeof node === 'string' ? [node] : node.children;
}
