/** A draft as elements of a document that is not shown, to paste into another program. */
import type { DraftElement, DraftNode } from '../../draft/draft-tree.js';

/** The HTML of a draft: headings start at `h1`, and tables have borders. */
export function draftHtml(tree: readonly DraftNode[]): string {
  const body = document.createElement('div');
  body.append(...tree.map(domOf));
  return body.innerHTML;
}

function domOf(node: DraftNode): Node {
  if (typeof node === 'string') return document.createTextNode(node);
  const element = document.createElement(HEADINGS[node.tag] ?? node.tag);
  for (const [name, value] of Object.entries(attributesOf(node))) element.setAttribute(name, value);
  element.append(...node.children.map(domOf));
  return element;
}

const HEADINGS: Readonly<Record<string, string>> = { h3: 'h1', h4: 'h2', h5: 'h3', h6: 'h4', aside: 'p' };

function attributesOf({ tag, href, start, align, isChecked }: DraftElement): Readonly<Record<string, string>> {
  return {
    ...(href !== undefined && { href }),
    ...(start !== undefined && { start: String(start) }),
    ...(align !== undefined && { align }),
    ...(tag === 'table' && { border: '1' }),
    ...(tag === 'input' && { type: 'checkbox', ...(isChecked === true && { checked: '' }) }),
  };
}
