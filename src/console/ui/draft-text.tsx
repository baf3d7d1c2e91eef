/** A draft as its author meant it: that of a format as a tree, any other as prose. */
import { useMemo } from 'preact/hooks';
import type { ProseProps } from './prose.js';
import { Prose } from './prose.js';
import { Later, jsonTree } from './chunks.js';

export function DraftText(props: ProseProps) {
  const { text } = props;
  const value = useMemo(() => jsonIn(text), [text]);
  if (value === null) return <Prose {...props} />;
  return <Later of={jsonTree}>{({ JsonTree }) => <JsonTree value={value} label="Draft as JSON" />}</Later>;
}

/** The list or object that a text is, or null. */
function jsonIn(text: string): object | null {
  if (!/^[[{].*[\]}]$/s.test(text)) return null;
  try {
    return JSON.parse(text) as object;
  } catch {
    return null;
  }
}
