/** The fields of a member that runs another council, and the items that it would find in a sample. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { BlueprintNode, ForEach } from '../../../generated/schemas.js';
import { countOf } from '../../record/counts.js';
import { FOR_EACH } from '../../record/page-words.js';
import { pageUrl } from '../../shell/router.js';
import { Later, chunk } from '../../ui/chunks.js';
import { Select, TextBox } from '../../ui/controls.js';
import { NumberField, TextField } from './fields.js';
import type { MemberFieldsProps } from './result-fields.js';

/** Loads with the first preview, because it holds the Markdown parser. */
const items = chunk(() => import('../../../draft/items.js'));

/** Most runs of a council in one step (contract, section 9), and most titles that the preview lists. */
const [MOST_ITEMS, MOST_SHOWN] = [200, 12];

type OnError = NonNullable<BlueprintNode['on_error']>;

const ON_ERROR = {
  fail: 'This run fails too',
  skip: 'Leave its result out and name it',
} as const satisfies Record<OnError, string>;

export function CouncilFields(props: Omit<MemberFieldsProps, 'role'>) {
  const { editor, node, at, set } = props;
  const { topic = '', for_each: forEach, max_parallel: maxParallel, on_error: onError = 'fail' } = node;
  const shared = (field: string) => ({ editor, fault: editor.faultAt(`nodes[${at}].${field}`) });
  return (
    <>
      <CouncilChoice {...props} />
      <Select
        label="Runs"
        fault={editor.faultAt(`nodes[${at}].for_each`)}
        disabled={!editor.mayEdit}
        value={forEach ?? ''}
        options={[
          ['', 'One, on the draft'],
          ...Object.entries(FOR_EACH).map(([by, what]) => [by, `One for each of the draft’s ${what}`] as const),
        ]}
        onChange={(by) => set(isForEach(by) ? { for_each: by } : { for_each: undefined, max_parallel: undefined })}
      />
      {forEach !== undefined && <Preview by={forEach} />}
      <TextField
        {...shared('topic')}
        label="Topic of its runs"
        rows={3}
        value={topic}
        placeholder={`The topic of this run, with the ${forEach === undefined ? 'draft' : 'item'} as material`}
        hint={<Marks />}
        onEdit={(text) => set({ topic: text === '' ? undefined : text }, 'topic')}
      />
      {forEach !== undefined && (
        <NumberField
          {...shared('max_parallel')}
          label="Runs at a time"
          placeholder="8"
          value={maxParallel}
          onEdit={(value) => set({ max_parallel: value }, 'max_parallel')}
        />
      )}
      <Select
        label="When one of its runs fails"
        fault={editor.faultAt(`nodes[${at}].on_error`)}
        disabled={!editor.mayEdit}
        value={onError}
        options={Object.entries(ON_ERROR)}
        onChange={(value) => set({ on_error: value === 'skip' ? 'skip' : undefined })}
      />
    </>
  );
}

function isForEach(text: string): text is ForEach {
  return Object.hasOwn(FOR_EACH, text);
}

function CouncilChoice({ editor, node: { council = '' }, at, set }: Omit<MemberFieldsProps, 'role'>) {
  useEffect(() => editor.loadCouncils(), [editor]);
  const { value: names } = editor.councils;
  const others = [...names].filter(([id]) => id !== editor.saved.value?.id);
  const isListed = council === '' || others.some(([id]) => id === council);
  return (
    <Select
      label="Council"
      hint={council === '' ? undefined : <a href={pageUrl(['blueprints', council])}>Show this council</a>}
      fault={editor.faultAt(`nodes[${at}].council`)}
      disabled={!editor.mayEdit}
      value={council}
      options={[['', 'Choose a saved council'], ...(isListed ? [] : [[council, council] as const]), ...others]}
      onChange={(id) => set({ council: id === '' ? undefined : id })}
    />
  );
}

function Marks() {
  return (
    <>
      <code>{'{{topic}}'}</code> stands for the topic of this run, <code>{'{{draft}}'}</code> for the draft,{' '}
      <code>{'{{item}}'}</code> for the item and <code>{'{{index}}'}</code> for its number, from 0.
    </>
  );
}

function Preview({ by }: { readonly by: ForEach }) {
  const isOpen = useSignal(false);
  const sample = useSignal('');
  return (
    <details class="more" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Try it on a sample draft</summary>
      {isOpen.value && (
        <div class="stack">
          <TextBox label="Sample draft" rows={5} value={sample.value} onType={(text) => (sample.value = text)} />
          <Later of={items}>
            {({ itemsOf }) => <Found {...itemsOf(sample.value, by)} isEmpty={sample.value === ''} />}
          </Later>
        </div>
      )}
    </details>
  );
}

interface FoundProps {
  readonly items: readonly { readonly title: string }[];
  readonly fault?: string;
  readonly isEmpty: boolean;
}

/** What a step would do with a draft: the titles of its runs, or why there are none. */
function Found({ items: found, fault, isEmpty }: FoundProps) {
  if (isEmpty) return null;
  if (fault !== undefined) return <p class="small fault">{fault}: the run fails.</p>;
  if (found.length === 0) return <p class="small muted">No item: the draft stays as it is.</p>;
  return (
    <div class="small stack tight" role="status">
      {found.length > MOST_ITEMS ? (
        <p class="fault">{`${found.length} items are more than ${MOST_ITEMS}: the run fails.`}</p>
      ) : (
        <p>{countOf(found.length, 'run')}:</p>
      )}
      <ol class="marked break" start={0}>
        {found.slice(0, MOST_SHOWN).map(({ title }, index) => (
          <li key={index}>{title}</li>
        ))}
      </ol>
      {found.length > MOST_SHOWN && <p class="muted">and {found.length - MOST_SHOWN} more</p>}
    </div>
  );
}
