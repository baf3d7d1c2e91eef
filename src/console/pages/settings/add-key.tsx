/** The dialog that adds a key. */
import { useSignal } from '@preact/signals';
import type { NewKey, Scope } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { lockIfUnauthorized } from '../../shell/session.js';
import { Button, Check, Select, TextBox } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { errorText } from '../../ui/states.js';

/** Each scope with what it allows, as in the contract. */
export const SCOPES: readonly (readonly [scope: Scope, allows: string])[] = [
  ['read', 'see runs, councils and documents'],
  ['run', 'start, fork and cancel runs'],
  ['approve', 'decide on waiting runs'],
  ['author', 'change councils'],
  ['documents', 'upload and delete documents'],
  ['audit', "see the keys' record and last use"],
  ['admin', 'manage keys and webhooks'],
];

const EXPIRIES = [
  ['', 'Never'],
  ['1d', 'In a day'],
  ['30d', 'In 30 days'],
  ['90d', 'In 90 days'],
  ['365d', 'In a year'],
] as const;

interface AddKeyDialogProps {
  readonly onAdded: (key: NewKey) => void;
  readonly onClose: () => void;
}

export function AddKeyDialog({ onAdded, onClose }: AddKeyDialogProps) {
  const name = useSignal('');
  const scopes = useSignal<readonly Scope[]>(['read']);
  const expiresIn = useSignal('90d');
  const isBusy = useSignal(false);
  const fault = useSignal<string | null>(null);
  async function add(): Promise<void> {
    isBusy.value = true;
    try {
      onAdded(
        await council.keys.add({
          name: name.value.trim(),
          scopes: scopes.value,
          ...(expiresIn.value !== '' && { expiresIn: expiresIn.value }),
        }),
      );
    } catch (error) {
      lockIfUnauthorized(error);
      fault.value = errorText(error);
    } finally {
      isBusy.value = false;
    }
  }
  const isReady = name.value.trim() !== '' && scopes.value.length > 0 && !isBusy.value;
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button tone="primary" disabled={!isReady} onClick={() => void add()}>
        Add the key
      </Button>
    </>
  );
  return (
    <Dialog title="Add a key" onClose={onClose} foot={foot}>
      <TextBox
        label="Name"
        hint="Letters, digits and . _ @ + -. Runs and decisions are recorded under this name."
        fault={fault.value}
        autocomplete="off"
        value={name.value}
        onType={(text) => (name.value = text)}
      />
      <ScopesField chosen={scopes.value} onChange={(chosen) => (scopes.value = chosen)} />
      <Select
        label="Expires"
        value={expiresIn.value}
        options={EXPIRIES}
        onChange={(value) => (expiresIn.value = value)}
      />
    </Dialog>
  );
}

interface ScopesFieldProps {
  readonly chosen: readonly Scope[];
  readonly onChange: (scopes: readonly Scope[]) => void;
}

function ScopesField({ chosen, onChange }: ScopesFieldProps) {
  return (
    <fieldset class="stack close">
      <legend class="label">Scopes</legend>
      {SCOPES.map(([scope, allows]) => (
        <Check
          key={scope}
          label={`${scope}: ${allows}`}
          checked={chosen.includes(scope)}
          onChange={(isOn) => {
            const others = chosen.filter((each) => each !== scope);
            onChange(isOn ? [...others, scope] : others);
          }}
        />
      ))}
    </fieldset>
  );
}
