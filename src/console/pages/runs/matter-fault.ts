/** Where the service refuses what a run works on and gives. */
import { InvalidError } from '../../../client/errors.js';

/** A fault of the service at one of the fields. */
export interface MatterFault {
  readonly at: 'material' | 'documents' | 'output_schema';
  readonly text: string;
}

const FIELDS = ['material', 'documents', 'output_schema'] as const;

/** The fault of a refused start or fork, or null if it is at none of the fields. */
export function matterFaultOf(error: unknown): MatterFault | null {
  for (const { loc, msg } of error instanceof InvalidError ? error.errors : []) {
    const at = FIELDS.find((name) => loc.includes(name));
    if (at !== undefined) {
      return { at, text: at === 'documents' ? `${msg}: one of the chosen documents was deleted.` : `${msg}.` };
    }
  }
  return null;
}

/** The text of a fault, if it is at a field. */
export function textAt(fault: MatterFault | null, at: MatterFault['at']): string | null {
  return fault?.at === at ? fault.text : null;
}
