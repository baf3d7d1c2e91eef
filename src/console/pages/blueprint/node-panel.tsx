/** The fields of a node. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { BlueprintNode } from '../../../generated/schemas.js';
import { Button, Check, Select } from '../../ui/controls.js';
import type { Change } from './draft.js';
import {
  entryOf,
  idFault,
  withEdge,
  withNodeChanged,
  withNodeRenamed,
  withProposedGodMode,
  withoutNode,
} from './draft.js';
import { ApprovalsFields, DeleteButton, NamesField, NumberField, TextField } from './fields.js';
import { MODEL_NAMES } from './model-names.js';
import { CouncilFields } from './council-fields.js';
import { IdField } from './id-field.js';
import { MemberFields } from './member-fields.js';
import type { ShownRole } from '../../record/page-words.js';
import { ROLES } from '../../record/page-words.js';
import { editorRole, isEditorRole, roleChange } from './members.js';
import { SchemaOf } from './schema-of.js';
import type { Editor } from './store.js';

export interface NodePanelProps {
  readonly editor: Editor;
  readonly at: number;
  readonly node: BlueprintNode;
}

export function NodePanel({ editor, at, node }: NodePanelProps) {
  const label = useRef<HTMLInputElement | HTMLTextAreaElement | null>(null);
  const draft = editor.draft.value;
  const isCouncil = roleIn(editor, node) === 'council';
  const set = (change: Change<BlueprintNode>, name: string | null = null): void =>
    editor.edit(
      withProposedGodMode(draft, withNodeChanged(draft, at, change)),
      name === null ? null : `node ${at} ${name}`,
    );
  useLayoutEffect(() => {
    if (!editor.isNew.value) return;
    editor.isNew.value = false;
    label.current?.select();
  }, [at, editor.isNew.value]);
  return (
    <>
      <TextField
        editor={editor}
        value={node.label ?? node.id}
        element={(found) => (label.current = found)}
        label="Label"
        onEdit={(text) => set({ label: text }, 'label')}
      />
      <RoleField editor={editor} node={node} onEdit={set} />
      <EntryField editor={editor} node={node} />
      {isCouncil ? <CouncilFields {...{ editor, node, at, set }} /> : <CallFields {...{ editor, node, at, set }} />}
      <Connections {...{ editor, node, at }} />
      {!isCouncil && <CallSettings {...{ editor, node, set }} />}
      <ApprovalsFields
        editor={editor}
        value={node.approvals}
        label="Approval rule for this member"
        onEdit={(approvals, name) => set({ approvals }, name)}
      />
      <NodeId {...{ editor, node, at }} />
      <DeleteButton editor={editor} what="member" to={withoutNode(draft, at)} />
    </>
  );
}

/** The fields of a member that calls a model. */
function CallFields({ editor, node, at, set }: SetProps & Pick<NodePanelProps, 'at'>) {
  return (
    <>
      <TextField
        editor={editor}
        value={node.systemPrompt ?? ''}
        label="System prompt"
        rows={8}
        onEdit={(text) => set({ systemPrompt: text }, 'prompt')}
      />
      <TextField
        editor={editor}
        value={node.model ?? ''}
        label="Model"
        placeholder="Default of the service"
        list={MODEL_NAMES}
        onEdit={(text) => set({ model: text === '' ? undefined : text }, 'model')}
      />
      <MemberFields {...{ editor, node, at, set }} role={roleIn(editor, node)} />
      {roleIn(editor, node) === 'format' && (
        <SchemaOf
          editor={editor}
          label="JSON Schema"
          hint="The member turns the draft into JSON that is valid by it."
          path={`nodes[${at}].schema`}
          value={node.schema}
          onEdit={(schema) => set({ schema }, 'schema')}
        />
      )}
      <Tools {...{ editor, node, set }} />
      <Check
        label="Without the material of the run"
        disabled={!editor.mayEdit}
        checked={node.material === false}
        onChange={(checked) => set({ material: checked ? false : undefined })}
      />
    </>
  );
}

function NodeId({ editor, node, at }: NodePanelProps) {
  return (
    <details class="more">
      <summary>Id</summary>
      <IdField
        editor={editor}
        label="Id"
        hint="Edges keep pointing to the member"
        value={node.id}
        faultOf={(id) => idFault(editor.draft.value, at, id)}
        onEdit={(id) => editor.edit(withNodeRenamed(editor.draft.value, at, id))}
      />
    </details>
  );
}

/** Whether a run begins at a node. It ends only when another node becomes the entry. */
function EntryField({ editor, node: { id } }: Pick<NodePanelProps, 'editor' | 'node'>) {
  const draft = editor.draft.value;
  const isEntry = entryOf(draft) === id;
  return (
    <Check
      label="A run begins here"
      checked={isEntry}
      disabled={!editor.mayEdit || isEntry}
      onChange={() => editor.edit({ ...draft, entry: id })}
    />
  );
}

const NUMBERS = [
  { field: 'temperature', label: 'Temperature, 0 to 2', placeholder: 'Default of the model' },
  { field: 'maxOutputTokens', label: 'Maximum of output tokens', placeholder: 'Default of the model' },
  { field: 'timeoutMs', label: 'Deadline in milliseconds', placeholder: 'Default of the service' },
  { field: 'maxAttempts', label: 'Attempts before it fails', placeholder: 'Default of the service' },
] as const;

interface SetProps {
  readonly editor: Editor;
  readonly node: BlueprintNode;
  readonly set: (change: Change<BlueprintNode>, name?: string) => void;
}

function CallSettings({ editor, node, set }: SetProps) {
  return (
    <details class="more">
      <summary>Model call settings</summary>
      {NUMBERS.map(({ field, ...words }) => (
        <NumberField
          key={field}
          editor={editor}
          value={node[field]}
          {...words}
          onEdit={(value) => set({ [field]: value }, field)}
        />
      ))}
      <NamesField
        editor={editor}
        value={node.fallbacks ?? []}
        label="Fallback models"
        hint="Separated by commas, asked in order"
        onEdit={(names) => set({ fallbacks: names.length === 0 ? undefined : [...names] }, 'fallbacks')}
      />
    </details>
  );
}

/** The role of a node, as set or else as the service reports it. */
export function roleIn(editor: Editor, node: BlueprintNode): ShownRole {
  return editorRole(node, node.type ?? editor.roles.value.get(node.id) ?? 'agent');
}

interface RoleFieldProps {
  readonly editor: Editor;
  readonly node: BlueprintNode;
  readonly onEdit: (change: Change<BlueprintNode>) => void;
}

function RoleField({ editor, node, onEdit }: RoleFieldProps) {
  const found = editor.roles.value.get(node.id);
  return (
    <Select
      label="Role"
      hint={
        node.type === undefined && found !== undefined ? `Current role: ${ROLES[editorRole(node, found)]}` : undefined
      }
      value={node.type === undefined ? '' : editorRole(node, node.type)}
      disabled={!editor.mayEdit}
      options={[['', 'From label and edges'], ...Object.entries(ROLES)]}
      onChange={(value) => onEdit(isEditorRole(value) ? roleChange(node, value) : { type: undefined })}
    />
  );
}

function Tools(props: SetProps) {
  return (
    <fieldset class="tools">
      <legend class="label">Tools</legend>
      <Tool {...props} tool="webSearch" label="Web search" />
      <Tool {...props} tool="pdfReader" label="PDF reader" />
    </fieldset>
  );
}

interface ToolProps extends SetProps {
  readonly tool: 'webSearch' | 'pdfReader';
  readonly label: string;
}

function Tool({ editor, node: { tools }, set, tool, label }: ToolProps) {
  return (
    <Check
      label={label}
      disabled={!editor.mayEdit}
      checked={tools?.[tool] === true}
      onChange={(checked) => set({ tools: { ...tools, [tool]: checked } })}
    />
  );
}

/** Draws an edge with a button: a list changes its value at every key. */
function Connect({ editor, node, at }: NodePanelProps) {
  const chosen = useSignal('');
  const draft = editor.draft.value;
  const target = chosen.value === '' ? undefined : draft.nodes[Number(chosen.value)];
  function connect(): void {
    if (target === undefined) return;
    chosen.value = '';
    editor.edit(withEdge(draft, { source: node.id, target: target.id }));
  }
  return (
    <div class="row connect">
      <select
        class="input grow"
        aria-label="Connect to…"
        value={chosen.value}
        onChange={({ currentTarget }) => (chosen.value = currentTarget.value)}
      >
        <option value="">Connect to…</option>
        {draft.nodes.map((other, index) => (
          <option key={index} value={index}>
            {index === at ? 'Itself' : (other.label ?? other.id)}
          </option>
        ))}
      </select>
      <Button slim disabled={target === undefined} onClick={connect}>
        Connect
      </Button>
    </div>
  );
}

function Connections({ editor, node, at }: NodePanelProps) {
  const draft = editor.draft.value;
  const from = draft.edges.flatMap((edge, index) => (edge.source === node.id ? [{ edge, index }] : []));
  const nameOf = (id: string): string => draft.nodes.find((each) => each.id === id)?.label ?? id;
  return (
    <fieldset class="connections">
      <legend class="label">Leads to</legend>
      {from.map(({ edge, index }) => (
        <Button key={index} slim onClick={() => editor.select({ kind: 'edge', at: index })}>
          {nameOf(edge.target)}
          {edge.type === 'conditional' && <code class="clip">if {edge.condition}</code>}
        </Button>
      ))}
      {from.length === 0 && <span class="small muted">No member</span>}
      {editor.mayEdit && <Connect {...{ editor, node, at }} />}
    </fieldset>
  );
}
