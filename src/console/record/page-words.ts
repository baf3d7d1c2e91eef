/** Texts of the service in the words of pages: a council for a blueprint, a member for a node, and labels for ids. */

import type { ForEach, NodeRole } from '../../generated/schemas.js';

/** A role as pages show it: a critic with members is a jury. */
export type ShownRole = NodeRole | 'jury';

/** @param role the role that the service reports */
export function shownRole(role: NodeRole, hasMembers: boolean): ShownRole {
  return role === 'critic' && hasMembers ? 'jury' : role;
}

/** The name of a role beside the name of a member, or null for a member that writes drafts, as most do. */
export function roleName(role: NodeRole, hasMembers: boolean): string | null {
  return role === 'agent' ? null : shownRole(role, hasMembers);
}

/** What the members of each role do, in the order of menus. */
export const ROLES: Readonly<Record<ShownRole, string>> = {
  agent: 'Writer: writes the draft',
  critic: 'Critic: scores it and routes',
  panel: 'Panel: members answer side by side',
  rank: 'Rank: orders the answers of a panel',
  judge: 'Judge: compares the answers of a panel',
  jury: 'Jury: a critic with several members',
  format: 'Format: turns the draft into JSON',
  council: 'Council: runs another saved council',
};

/** The items of a draft for which a council has a run each. */
export const FOR_EACH: Readonly<Record<ForEach, string>> = {
  headings: 'sections',
  lines: 'lines',
  json: 'JSON elements',
};

/** The names of nodes and members in texts. */
export interface Names {
  /** The name of a node, by its id. */
  readonly node: (id: string) => string;
  /** The name of a member of a node, by both ids. */
  readonly member: (node: string, id: string) => string;
  /** The name of a member of a panel whose answer was ranked, by its id. */
  readonly ranked: (id: string) => string;
  /** What stands for the letter of an answer that a reviewer saw at its step. */
  readonly letter: (step: number, letter: string) => string;
}

/** A text that the service wrote itself, without words of users or models. */
export function inPageWords(text: string): string {
  return text.replace(/\bblueprint/g, 'council').replace(/\bnode(?=s?\b)/g, 'member');
}

/** A recorded error with the labels of nodes in place of their quoted ids. */
export function withLabels(error: string, names: Pick<Names, 'node'>): string {
  return error
    .replace(/^Cannot run blueprint "[^"]*"/, 'Cannot run the council')
    .replace(/"([^"\n]{1,128})"/g, (_, id: string) => `"${names.node(id)}"`)
    .replace(/\b(n)ode(?= ")/gi, (_, first: string) => (first === 'N' ? 'Member' : 'member'));
}
