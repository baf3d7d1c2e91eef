/** The fields of panels, ranks and juries: their members, and how their answers become one result. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Button, Check } from '../../ui/controls.js';
import type { Change } from './draft.js';
import { NamesField, NumberField, TextField } from './fields.js';
import { IdField } from './id-field.js';
import { MODEL_NAMES } from './model-names.js';
import type { Member } from './members.js';
import {
  MOST_MEMBERS,
  memberIdFault,
  membersOf,
  newMembers,
  uses,
  withMember,
  withMemberChanged,
  withMemberMoved,
  withoutMember,
} from './members.js';
import type { MemberFieldsProps } from './result-fields.js';
import { ResultFields } from './result-fields.js';
import type { Editor } from './store.js';

export function MemberFields(props: MemberFieldsProps) {
  const { editor, node, role, set } = props;
  if (!uses(role, 'members')) return null;
  const hasOwn = (node.members ?? []).length > 0;
  return (
    <>
      {role === 'rank' && (
        <Check
          label="Reviewers of its own, instead of the members of the panel"
          disabled={!editor.mayEdit}
          checked={hasOwn}
          onChange={(checked) => set({ members: checked ? newMembers() : undefined })}
        />
      )}
      {(role !== 'rank' || hasOwn) && <MemberList {...props} />}
      <ResultFields {...props} />
    </>
  );
}

function MemberList({ editor, node, at, role, set }: MemberFieldsProps) {
  const members = membersOf(node);
  /** The member that was added last, which opens. */
  const added = useSignal<string | null>(null);
  const fault = editor.faultAt(`nodes[${at}].members`);
  /** The button that has moved a member: it keeps the focus where the member is now. */
  const mover = useRef<HTMLElement | null>(null);
  const setMembers = (next: readonly Member[], name?: string): void => set({ members: [...next] }, name);
  useLayoutEffect(() => {
    focusAfterMove(mover.current);
    mover.current = null;
  });
  function add(): void {
    const next = withMember(members);
    added.value = next.at(-1)?.id ?? null;
    setMembers(next);
  }
  return (
    <fieldset class="editor-members" aria-invalid={fault === null ? undefined : 'true'}>
      <legend class="label">{role === 'rank' ? 'Reviewers' : 'Members'}</legend>
      <ol>
        {members.map((member, index) => (
          <li key={member.id}>
            <MemberItem
              {...{ editor, member, index, members, setMembers }}
              path={`nodes[${at}].members[${index}]`}
              isNew={added.value === member.id}
              onMove={(by, button) => {
                mover.current = button;
                setMembers(withMemberMoved(members, index, by));
              }}
            />
          </li>
        ))}
      </ol>
      {fault !== null && (
        <p class="small fault" role="alert">
          {fault}
        </p>
      )}
      {editor.mayEdit && (
        <Button slim disabled={members.length >= MOST_MEMBERS} onClick={add}>
          Add a {role === 'rank' ? 'reviewer' : 'panel member'}
        </Button>
      )}
    </fieldset>
  );
}

/** A button is disabled where the member cannot move further: then its summary gets the focus. */
function focusAfterMove(button: HTMLElement | null): void {
  if (button === null) return;
  if (button.matches(':disabled')) button.closest('details')?.querySelector('summary')?.focus();
  else button.focus();
}

function buttonOf({ target }: MouseEvent): HTMLElement | null {
  return target instanceof Element ? target.closest('button') : null;
}

interface MemberItemProps {
  readonly editor: Editor;
  readonly member: Member;
  readonly index: number;
  readonly members: readonly Member[];
  readonly setMembers: (next: readonly Member[], name?: string) => void;
  /** Its place in findings. */
  readonly path: string;
  readonly isNew: boolean;
  readonly onMove: (by: 1 | -1, button: HTMLElement | null) => void;
}

function MemberItem({ editor, member, index, members, setMembers, path, isNew, onMove }: MemberItemProps) {
  const { label = member.id, model } = member;
  const set = (change: Change<Member>, field: string): void =>
    setMembers(withMemberChanged(members, index, change), `member ${index} ${field}`);
  const faults = editor.faultsUnder(path);
  return (
    <details open={isNew}>
      <summary>
        <span class="member-name">{label}</span> {model !== undefined && <span class="muted small break">{model}</span>}
        {faults > 0 && <span class="fault small"> has an error</span>}
      </summary>
      <div class="stack" role="group" aria-label={label}>
        <Fields {...{ editor, member, members, path, set }} />
        {editor.mayEdit && (
          <div class="row">
            <Button
              slim
              label={`Move ${label} up`}
              disabled={index === 0}
              onClick={(event) => onMove(-1, buttonOf(event))}
            >
              ↑
            </Button>
            <Button
              slim
              label={`Move ${label} down`}
              disabled={index === members.length - 1}
              onClick={(event) => onMove(1, buttonOf(event))}
            >
              ↓
            </Button>
            <Button slim tone="danger" onClick={() => setMembers(withoutMember(members, index))}>
              Remove {label}
            </Button>
          </div>
        )}
      </div>
    </details>
  );
}

interface FieldsProps extends Pick<MemberItemProps, 'editor' | 'member' | 'members' | 'path'> {
  readonly set: (change: Change<Member>, field: string) => void;
}

/** What a member lacks, it has from its node. */
function Fields({ editor, member, members, path, set }: FieldsProps) {
  const shared = (field: string) => ({ editor, fault: editor.faultAt(`${path}.${field}`) });
  const textOr = (text: string): string | undefined => (text === '' ? undefined : text);
  return (
    <>
      <TextField
        {...shared('label')}
        label="Member label"
        value={member.label ?? member.id}
        onEdit={(label) => set({ label }, 'label')}
      />
      <TextField
        {...shared('model')}
        label="Member model"
        placeholder={OF_PANEL}
        list={MODEL_NAMES}
        value={member.model ?? ''}
        onEdit={(text) => set({ model: textOr(text) }, 'model')}
      />
      <TextField
        {...shared('systemPrompt')}
        label="Member system prompt"
        rows={3}
        placeholder={OF_PANEL}
        value={member.systemPrompt ?? ''}
        onEdit={(text) => set({ systemPrompt: textOr(text) }, 'systemPrompt')}
      />
      <NumberField
        {...shared('temperature')}
        label="Member temperature, 0 to 2"
        placeholder={OF_PANEL}
        value={member.temperature}
        onEdit={(temperature) => set({ temperature }, 'temperature')}
      />
      <NumberField
        {...shared('maxOutputTokens')}
        label="Member maximum of output tokens"
        placeholder={OF_PANEL}
        value={member.maxOutputTokens}
        onEdit={(maxOutputTokens) => set({ maxOutputTokens }, 'maxOutputTokens')}
      />
      <NamesField
        {...shared('fallbacks')}
        label="Member fallback models"
        hint="Separated by commas, asked in order"
        value={member.fallbacks ?? []}
        onEdit={(names) => set({ fallbacks: names.length === 0 ? undefined : [...names] }, 'fallbacks')}
      />
      <IdField
        {...shared('id')}
        label="Member id"
        value={member.id}
        faultOf={(id) => memberIdFault(members, member, id)}
        onEdit={(id) => set({ id }, 'id')}
      />
    </>
  );
}

const OF_PANEL = 'That of the panel';
