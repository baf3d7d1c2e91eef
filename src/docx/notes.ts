/** Footnotes in a draft's tree: `aside` defines one, `sup` refers to one; both begin with its label. */
import type { DraftElement, DraftNode } from '../console/record/draft-tree.js';

/** The label of a reference. */
export function noteLabel({ children: [label] }: DraftElement): string {
  return typeof label === 'string' ? label : '';
}

/** The first definition of each footnote that the text outside of footnotes refers to, by label. */
export function referencesIn(tree: readonly DraftNode[]): ReadonlyMap<string, DraftElement> {
  const defined = new Map<string, DraftElement>();
  const referred = new Set<string>();
  const walk = (node: DraftNode): void => {
    if (typeof node === 'string') return;
    const [mark] = node.children;
    if (node.tag === 'sup') referred.add(noteLabel(node));
    else if (node.tag !== 'aside' || typeof mark !== 'object') node.children.forEach(walk);
    else if (!defined.has(noteLabel(mark))) defined.set(noteLabel(mark), node);
  };
  tree.forEach(walk);
  return new Map([...defined].filter(([label]) => referred.has(label)));
}
