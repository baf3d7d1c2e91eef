/** The fields of the selected node or edge, or of the blueprint; or the blueprint as JSON. */
import { useSignal } from '@preact/signals';
import type { BlueprintEdge, ModelOptions, Budget } from '../../../generated/schemas.js';
import { Button, Check, Segments, Select, TextBox } from '../../ui/controls.js';
import type { Change, Draft, NodeOrEdge } from './draft.js';
import { changed, hasRules, jsonOf, parseDraft, withEdgeChanged, withProposedGodMode, withoutEdge } from './draft.js';
import { ApprovalsFields, DeleteButton, TextField, NumberField } from './fields.js';
import { isAtMemberField } from './members.js';
import { SchemaOf } from './schema-of.js';
import { DocumentChoice } from '../../ui/document-choice.js';
import { ModelNames } from './model-names.js';
import { idsFrom, newIdFault } from './new-id.js';
import { NodePanel, roleIn } from './node-panel.js';
import type { Finding } from './findings.js';
import type { Editor } from './store.js';
import { ON_EXCEEDED, isOnExceeded } from '../../record/budget.js';

export function Panel({ editor }: { readonly editor: Editor }) {
  const view = useSignal<'fields' | 'json'>('fields');
  const isJson = view.value === 'json';
  const part = editor.selected.value;
  const title = isJson ? 'JSON' : part === null ? 'Council' : part.kind === 'node' ? 'Member' : 'Edge';
  return (
    <section class="card editor-panel" aria-label={title}>
      <div class="row spread">
        <h2>{title}</h2>
        <div class="row">
          {part !== null && !isJson && (
            <Button slim tone="plain" onClick={() => editor.select(null)}>
              Show council
            </Button>
          )}
          <Segments
            label="Editor"
            value={view.value}
            options={[
              { value: 'fields', text: 'Fields' },
              { value: 'json', text: 'JSON' },
            ]}
            onChange={(value) => (view.value = value)}
          />
        </div>
      </div>
      {isJson ? <JsonPanel editor={editor} /> : <FieldsPanel editor={editor} />}
    </section>
  );
}

function FieldsPanel({ editor }: { readonly editor: Editor }) {
  const part = editor.selected.value;
  const { nodes, edges } = editor.draft.value;
  if (part === null) return <BlueprintPanel editor={editor} />;
  const [node, edge] = part.kind === 'node' ? [nodes[part.at], undefined] : [undefined, edges[part.at]];
  return (
    <>
      <PartFindings {...{ editor, part }} />
      <ModelNames />
      {node !== undefined && <NodePanel key={part.at} editor={editor} node={node} at={part.at} />}
      {edge !== undefined && <EdgePanel key={part.at} editor={editor} edge={edge} at={part.at} />}
    </>
  );
}

/** The findings of a part, except those shown at a field. */
function PartFindings({ editor, part }: { readonly editor: Editor; readonly part: NodeOrEdge }) {
  const found = editor.findings.value.filter((each) => isOf(each, part) && !isAtField(editor, part, each.path));
  return found.map(({ path, message }) => (
    <p key={path + message} class="notice wait small break">
      {message}
    </p>
  ));
}

function isOf({ part }: Finding, { kind, at }: NodeOrEdge): boolean {
  return part?.kind === kind && part.at === at;
}

function isAtField(editor: Editor, { kind, at }: NodeOrEdge, path: string): boolean {
  const [, field = ''] = /^\w+\[\d+\]\.(.*)$/.exec(path) ?? [];
  if (kind === 'edge') return field === 'condition';
  const node = editor.draft.value.nodes[at];
  return node !== undefined && isAtMemberField(field, roleIn(editor, node));
}

function BlueprintPanel({ editor }: { readonly editor: Editor }) {
  const draft = editor.draft.value;
  return (
    <>
      <TextField
        editor={editor}
        value={draft.name}
        label="Name"
        fault={draft.name === '' ? 'Enter a name.' : null}
        onEdit={(name) => editor.edit({ ...draft, name }, 'name')}
      />
      {editor.saved.value === null && editor.mayEdit && <NewIdField editor={editor} />}
      <ApprovalsFields
        editor={editor}
        value={draft.approvals}
        label="Approval rule for every pause"
        onEdit={(approvals, name) => editor.edit(withProposedGodMode(draft, changed(draft, { approvals })), name)}
      />
      <AlwaysField editor={editor} draft={draft} />
      <BudgetFields
        editor={editor}
        value={draft.budget}
        onEdit={(budget, name) => editor.edit(changed(draft, { budget }), name)}
      />
      <MatterOptions {...{ editor, draft }} />
      <Check
        label="God Mode when a program calls it as a model"
        disabled={!editor.mayEdit}
        checked={draft.model_options?.god_mode === true}
        onChange={(checked) => editor.edit(changed(draft, { model_options: withGodMode(draft, checked) }))}
      />
      <p class="small muted">Select a member or an edge to change it.</p>
      {editor.mayEdit && (
        <ul class="small muted keys stack tight" aria-label="Shortcuts in the graph">
          <li>
            Dragging moves the graph, the wheel zooms, <kbd>0</kbd> shows it all
          </li>
          <li>
            <kbd>N</kbd> adds a member, <kbd>Delete</kbd> deletes the selection
          </li>
          <li>
            <kbd>C</kbd> on a member starts an edge, <kbd>Enter</kbd> on another ends it
          </li>
          <li>
            Arrows select a member, with <kbd>Shift</kbd> they move it
          </li>
          <li>
            <kbd>Ctrl Z</kbd> undoes (<kbd>Shift</kbd>: redoes), <kbd>Ctrl S</kbd> saves
          </li>
        </ul>
      )}
    </>
  );
}

/** The documents of its runs and the schema of their output. */
function MatterOptions({ editor, draft }: { readonly editor: Editor; readonly draft: Draft }) {
  const { documents = [], output_schema: schema } = draft;
  const isOpen = useSignal(documents.length > 0 || schema !== undefined);
  return (
    <details class="more" open={isOpen.value} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>Documents and exact output</summary>
      {isOpen.value && (
        <>
          <DocumentChoice
            chosen={documents}
            disabled={!editor.mayEdit}
            without="The PDF reader searches all documents."
            fault={editor.faultAt('documents')}
            onChoose={(chosen) =>
              editor.edit(changed(draft, { documents: chosen.length === 0 ? undefined : [...chosen] }), 'documents')
            }
          />
          <SchemaOf
            editor={editor}
            label="JSON Schema of the output"
            hint="Every run also gives its result as JSON that is valid by this schema."
            path="output_schema"
            value={schema}
            onEdit={(next) => editor.edit(changed(draft, { output_schema: next }), 'output schema')}
          />
        </>
      )}
    </details>
  );
}

function AlwaysField({ editor, draft }: { readonly editor: Editor; readonly draft: Draft }) {
  return (
    <div class="stack tight">
      <Check
        label="Pause every run for approval"
        disabled={!editor.mayEdit}
        checked={draft.god_mode === 'always'}
        onChange={(checked) => editor.edit(changed(draft, { god_mode: godModeAfter(draft, checked) }))}
      />
      {hasRules(draft) && draft.god_mode !== 'always' && (
        <p class="small muted">Runs that start without God Mode ask no approver.</p>
      )}
    </div>
  );
}

function NewIdField({ editor }: { readonly editor: Editor }) {
  const [fromName] = idsFrom(editor.draft.value.name);
  return (
    <TextBox
      label="Id"
      hint="Programs start the council by it, so it never changes. Empty: made from the name"
      fault={newIdFault(editor.newId.value)}
      look="mono"
      placeholder={fromName}
      maxLength={128}
      autocomplete="off"
      spellcheck={false}
      value={editor.newId.value}
      onType={(id) => (editor.newId.value = id)}
    />
  );
}

/** With an approval rule, the choice against it is saved too, so that the editor does not propose it again. */
function godModeAfter(draft: Draft, isOn: boolean): Draft['god_mode'] {
  if (isOn) return 'always';
  return hasRules(draft) ? 'optional' : undefined;
}

/** The options of a draft as a model, or undefined if none is left. */
function withGodMode({ model_options: options = {} }: Draft, isOn: boolean): ModelOptions | undefined {
  const next = changed(options, { god_mode: isOn ? true : undefined });
  return Object.keys(next).length === 0 ? undefined : next;
}

interface EdgePanelProps {
  readonly editor: Editor;
  readonly at: number;
  readonly edge: BlueprintEdge;
}

function EdgePanel({ editor, at, edge }: EdgePanelProps) {
  const draft = editor.draft.value;
  const set = (change: Change<BlueprintEdge>, name: string | null = null): void =>
    editor.edit(withEdgeChanged(draft, at, change), name);
  const fault = editor.faultAt(`edges[${at}].condition`);
  return (
    <>
      <EndField editor={editor} label="From" value={edge.source} onEdit={(source) => set({ source })} />
      <EndField editor={editor} label="To" value={edge.target} onEdit={(target) => set({ target })} />
      {editor.mayEdit && (
        <Segments
          label="Use this edge"
          value={edge.type ?? 'linear'}
          options={[
            { value: 'linear', text: 'Always' },
            { value: 'conditional', text: 'On a condition' },
          ]}
          onChange={(type) =>
            set({ type, condition: type === 'linear' ? null : (edge.condition ?? proposed(editor, edge)) })
          }
        />
      )}
      {(edge.type === 'conditional' || (edge.condition ?? null) !== null) && (
        <TextField
          editor={editor}
          fault={fault}
          value={edge.condition ?? ''}
          label="Condition"
          look="mono"
          hint={
            <>
              A critic's <code>approve</code> or <code>rework</code>, or a comparison of <code>score</code>,{' '}
              <code>iteration</code>, <code>route</code>, <code>draft_length</code>, <code>agreement</code>,{' '}
              <code>spread</code>
            </>
          }
          onEdit={(condition) => set({ condition }, `edge ${at} condition`)}
        />
      )}
      <DeleteButton editor={editor} what="edge" to={withoutEdge(draft, at)} />
    </>
  );
}

/** The first value of a new condition: a verdict that no other edge of the critic uses. */
function proposed(editor: Editor, { source }: BlueprintEdge): string {
  if (editor.roles.value.get(source) !== 'critic') return '';
  const isTaken = editor.draft.value.edges.some((each) => each.source === source && each.condition === 'rework');
  return isTaken ? 'approve' : 'rework';
}

interface EndFieldProps {
  readonly editor: Editor;
  readonly label: string;
  readonly value: string;
  readonly onEdit: (id: string) => void;
}

function EndField({ editor, label, value, onEdit }: EndFieldProps) {
  const { nodes } = editor.draft.value;
  return (
    <Select
      label={label}
      value={value}
      disabled={!editor.mayEdit}
      options={[
        ...(nodes.some(({ id }) => id === value) ? [] : [[value, `${value} (no such member)`] as const]),
        ...nodes.map(({ id, label: name = id }) => [id, name] as const),
      ]}
      onChange={onEdit}
    />
  );
}

/** The blueprint as JSON; a change applies as soon as it is valid. */
function JsonPanel({ editor }: { readonly editor: Editor }) {
  const typed = useSignal<{
    readonly text: string;
    readonly draft: Draft | null;
    readonly fault: string | null;
  } | null>(null);
  const draft = editor.draft.value;
  const last = typed.value;
  const mine = last !== null && (last.draft === null || last.draft === draft) ? last : null;
  function read(text: string): void {
    try {
      const next = parseDraft(text);
      typed.value = { text, draft: next, fault: null };
      editor.edit(next, 'json');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      typed.value = { text, draft: null, fault: `Not applied: ${reason}` };
    }
  }
  return (
    <TextBox
      label="Council as JSON"
      hint="Unknown fields are kept"
      fault={mine?.fault ?? null}
      rows={20}
      look="mono json"
      spellcheck={false}
      readOnly={!editor.mayEdit}
      value={mine?.text ?? jsonOf(draft)}
      onType={read}
      onBlur={() => editor.endEdit()}
    />
  );
}

export interface BudgetFieldsProps {
  readonly editor: Editor;
  readonly value: Budget | undefined;
  readonly onEdit: (value: Budget | undefined, name: string) => void;
}

export function BudgetFields({ editor, value, onEdit }: BudgetFieldsProps) {
  const { usd, tokens, on_exceeded: onExceeded = 'pause' } = value ?? {};
  function set(change: Change<Budget>): void {
    const next = changed(value ?? {}, change);
    // A budget has a limit.
    onEdit(next.usd === undefined && next.tokens === undefined ? undefined : next, 'budget');
  }
  return (
    <details class="more" open={value !== undefined}>
      <summary>Budget of each run</summary>
      <NumberField
        editor={editor}
        value={usd}
        label="At most, in US dollars"
        placeholder="no limit"
        onEdit={(dollars) => set({ usd: dollars })}
      />
      <NumberField
        editor={editor}
        value={tokens}
        label="At most, in tokens"
        placeholder="no limit"
        onEdit={(count) => set({ tokens: count })}
      />
      {value !== undefined && (
        <Select
          label="When the next call would pass it"
          value={onExceeded}
          disabled={!editor.mayEdit}
          options={ON_EXCEEDED}
          onChange={(end) => {
            if (isOnExceeded(end)) set({ on_exceeded: end });
          }}
        />
      )}
    </details>
  );
}
