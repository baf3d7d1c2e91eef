/** The members of a node in the editor: plain values, and edits that keep unknown fields. */
import type { BlueprintNode, NodeRole } from '../../../generated/schemas.js';
import type { ShownRole } from '../../record/page-words.js';
import { ROLES, shownRole } from '../../record/page-words.js';
import type { Change } from './draft.js';
import { changed } from './draft.js';

/** A member with its id. */
export type Member = Exclude<NonNullable<BlueprintNode['members']>[number], string> & { readonly id: string };

/** Most members of a node (contract, section 6.4). */
export const MOST_MEMBERS = 8;
/** Members of a new panel or jury. */
const FIRST_MEMBERS = 3;

/** The schema of a new format. */
const FIRST_SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false,
};

export function isEditorRole(text: string): text is ShownRole {
  return Object.hasOwn(ROLES, text);
}

/** The role of a node. @param role the role that the service reports */
export function editorRole({ members = [] }: BlueprintNode, role: NodeRole): ShownRole {
  return shownRole(role, members.length > 0);
}

/** The fields of a node that only some roles use. */
const ROLE_FIELDS = [
  ...(['members', 'quorum', 'graceMs', 'keep', 'aggregate', 'schema'] as const),
  ...(['council', 'topic', 'for_each', 'max_parallel', 'on_error'] as const),
] as const;

type RoleField = (typeof ROLE_FIELDS)[number];

const USED: Readonly<Record<ShownRole, readonly RoleField[]>> = {
  agent: [],
  critic: [],
  judge: [],
  format: ['schema'],
  council: ['council', 'topic', 'for_each', 'max_parallel', 'on_error'],
  rank: ['members', 'keep'],
  panel: ['members', 'quorum', 'graceMs'],
  jury: ['members', 'quorum', 'graceMs', 'aggregate'],
};

export function uses(role: ShownRole, field: RoleField): boolean {
  return USED[role].includes(field);
}

/** A node's change to another role: a panel and a jury get members, a format a schema, and fields that the role does not use go. */
export function roleChange(node: BlueprintNode, role: ShownRole): Change<BlueprintNode> {
  const unused = ROLE_FIELDS.filter((field) => !uses(role, field));
  return {
    type: role === 'jury' ? 'critic' : role,
    ...Object.fromEntries(unused.map((field) => [field, undefined])),
    members: membersFor(node, role),
    schema: role === 'format' ? (node.schema ?? FIRST_SCHEMA) : undefined,
  };
}

function membersFor(node: BlueprintNode, role: ShownRole): BlueprintNode['members'] {
  if (role !== 'panel' && role !== 'jury') return undefined;
  return node.members !== undefined && node.members.length > 1 ? node.members : newMembers();
}

/** The members of a new panel or jury, or of a rank with its own reviewers. */
export function newMembers(): Member[] {
  let members: readonly Member[] = [];
  while (members.length < FIRST_MEMBERS) members = withMember(members);
  return [...members];
}

/** The members, also those that only name a model, with their ids. */
export function membersOf({ members = [] }: BlueprintNode): readonly Member[] {
  return members.map((member, at) => {
    const given = typeof member === 'string' ? { model: member } : member;
    return { ...given, id: given.id ?? `m${at + 1}` };
  });
}

/** Why a member cannot have an id, or null if it can. */
export function memberIdFault(members: readonly Member[], member: Member, id: string): string | null {
  if (id === '') return 'Enter another id.';
  return members.some((each) => each !== member && each.id === id) ? `Another member has the id “${id}”.` : null;
}

export function withMember(members: readonly Member[]): readonly Member[] {
  const ids = new Set(members.map(({ id }) => id));
  let count = members.length + 1;
  while (ids.has(`m${count}`)) count += 1;
  return [...members, { id: `m${count}`, label: `Member ${count}` }];
}

export function withoutMember(members: readonly Member[], at: number): readonly Member[] {
  return members.filter((_, index) => index !== at);
}

export function withMemberChanged(members: readonly Member[], at: number, change: Change<Member>): readonly Member[] {
  return members.map((member, index) => (index === at ? changed(member, change) : member));
}

/** Moves a member before or after its neighbour. */
export function withMemberMoved(members: readonly Member[], at: number, by: 1 | -1): readonly Member[] {
  const [member, other] = [members[at], members[at + by]];
  if (member === undefined || other === undefined) return members;
  return members.map((each, index) => (index === at ? other : index === at + by ? member : each));
}

/** Whether the editor shows a finding at a field of its node. @param field the rest of its path after the node */
export function isAtMemberField(field: string, role: ShownRole): boolean {
  const [name = ''] = /^\w+/.exec(field) ?? [];
  return isRoleField(name) && uses(role, name);
}

function isRoleField(name: string): name is RoleField {
  return ROLE_FIELDS.some((field) => field === name);
}
