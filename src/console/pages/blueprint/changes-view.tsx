/** Shows the changes between two versions: long texts word by word, other fields as values. */
import { Badge } from '../../ui/controls.js';
import { TextDiff } from '../../ui/text-diff.js';
import type { FieldChange, PartChange } from './changes.js';

const WORDS = { blueprint: 'council', node: 'member', edge: 'edge' } as const;
const SIGNS = { added: 'good', removed: 'bad', changed: 'wait' } as const;

export function Changes({ changes }: { readonly changes: readonly PartChange[] }) {
  if (changes.length === 0) return <p class="muted">No changes.</p>;
  return (
    <ul class="changes">
      {changes.map(({ kind, name, how, fields }) => (
        <li key={JSON.stringify([kind, name])}>
          <div class="row">
            <Badge tone={SIGNS[how]} flat>
              {WORDS[kind]} {how}
            </Badge>
            <strong class="break">{name}</strong>
          </div>
          {how === 'changed' ? (
            <dl class="stack close">
              {fields.map((change) => (
                <div key={change.field}>
                  <dt class="small muted break">{change.field}</dt>
                  <dd>
                    <Value {...change} />
                  </dd>
                </div>
              ))}
            </dl>
          ) : (
            <p class="small muted break">{fields.flatMap(summary).join(' · ')}</p>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Shorter single-line texts are shown side by side, in characters. */
const SHORT = 60;

function Value({ before, after }: FieldChange) {
  const texts = [before, after].filter((value) => typeof value === 'string');
  const isLong = texts.some((text) => text.length > SHORT || text.includes('\n'));
  if (isLong) return <TextDiff before={textOf(before)} after={textOf(after)} />;
  return (
    <span class="break">
      {before !== undefined && <del class="removed">{textOf(before)}</del>}{' '}
      {after !== undefined && <ins class="added">{textOf(after)}</ins>}
    </span>
  );
}

function summary({ field, before, after }: FieldChange): readonly string[] {
  const text = textOf(after ?? before);
  return text === null || text === '' || field === 'id'
    ? []
    : [`${field}: ${[...text.slice(0, 200)].slice(0, 80).join('')}`];
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
