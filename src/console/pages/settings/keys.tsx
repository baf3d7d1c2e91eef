/** The keys of the service: add, see their use, revoke. */
import { useSignal } from '@preact/signals';
import type { Key, NewKey } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { basePath } from '../../shell/router.js';
import { actor, may, session } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';
import { useResource } from '../../ui/resource.js';
import { Empty, WhenLoaded } from '../../ui/states.js';
import { Table } from '../../ui/table.js';
import { Ago, dateTimeText, now } from '../../ui/time.js';
import { AddKeyDialog, SCOPES } from './add-key.js';
import { SecretNotice } from './secret-notice.js';

export function KeyList() {
  const isOpen = session.value.status === 'in' && session.value.isOpen;
  if (isOpen) {
    return (
      <Empty title="This service has no keys">
        <p>Anyone on this machine has access. Add the first key in a terminal, in the folder of the service:</p>
        <p class="break">
          <code>
            npx council keys add NAME --scopes {SCOPES.map(([scope]) => scope).join(',')} --url{' '}
            {window.location.origin + basePath}
          </code>
        </p>
      </Empty>
    );
  }
  if (!may('admin') && !may('audit')) {
    return (
      <Empty title="Your key does not show other keys">
        <p>An administrator has the scope admin, which lists, adds and revokes keys.</p>
        <OwnScopes />
      </Empty>
    );
  }
  return <Keys />;
}

function OwnScopes() {
  const { value: state } = session;
  if (state.status !== 'in') return null;
  return (
    <p>
      Your key {state.session.actor} has the scopes <Scopes scopes={state.session.scopes} />
    </p>
  );
}

function Keys() {
  const keys = useResource('keys', (signal) => council.keys.list({ signal }));
  const isAdding = useSignal(false);
  const added = useSignal<NewKey | null>(null);
  return (
    <div class="stack">
      {added.value !== null && (
        <SecretNotice
          title={`Key ${added.value.name}`}
          name="Key"
          secret={added.value.key}
          onClose={() => (added.value = null)}
        />
      )}
      {may('admin') && (
        <div class="row">
          <Button tone="primary" onClick={() => (isAdding.value = true)}>
            Add a key
          </Button>
        </div>
      )}
      <WhenLoaded of={keys} what="the keys">
        {(found) => <KeyTable keys={found} onRevoked={keys.reload} />}
      </WhenLoaded>
      {isAdding.value && (
        <AddKeyDialog
          onClose={() => (isAdding.value = false)}
          onAdded={(key) => {
            [isAdding.value, added.value] = [false, key];
            keys.reload();
          }}
        />
      )}
    </div>
  );
}

interface KeyTableProps {
  readonly keys: readonly Key[];
  readonly onRevoked: () => void;
}

function KeyTable({ keys, onRevoked }: KeyTableProps) {
  return (
    <section class="card wide-table" aria-label="Keys" tabIndex={0}>
      <Table heads={['Name', 'Scopes', 'Created', 'Last used', 'Expires', '']}>
        {keys.map((key) => (
          <KeyRow key={key.name} shown={key} onRevoked={onRevoked} />
        ))}
      </Table>
    </section>
  );
}

function KeyRow({ shown: key, onRevoked }: { readonly shown: Key; readonly onRevoked: () => void }) {
  const { name, scopes, created_at: createdAt, created_by: creator, last_used: lastUsed } = key;
  const hasEnded = key.revoked_at !== null || isExpired(key);
  return (
    <tr class={hasEnded ? 'muted' : undefined}>
      <th scope="row" class="break">
        {name}
        {name === actor.value && <span class="muted small"> (yours)</span>}
      </th>
      <td>
        <Scopes scopes={scopes} />
      </td>
      <td class="small">
        <Ago at={createdAt} />
        {creator !== null && ` by ${creator}`}
      </td>
      <td class="small">{lastUsed === undefined ? 'needs the scope audit' : (lastUsed ?? 'never')}</td>
      <td class="small">
        <Expiry shown={key} />
      </td>
      <td>{may('admin') && !hasEnded && <Revoke name={name} onRevoked={onRevoked} />}</td>
    </tr>
  );
}

function isExpired({ expires_at: at }: Key): boolean {
  return at !== null && Date.parse(at) <= now.value;
}

function Expiry({ shown: key }: { readonly shown: Key }) {
  if (key.revoked_at !== null) {
    return (
      <>
        revoked <Ago at={key.revoked_at} />
        {key.revoked_by !== null && ` by ${key.revoked_by}`}
      </>
    );
  }
  if (key.expires_at === null) return <>never</>;
  return <>{isExpired(key) ? `expired ${dateTimeText(key.expires_at)}` : dateTimeText(key.expires_at)}</>;
}

function Scopes({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <span class="row tight">
      {scopes.map((scope) => (
        <Badge key={scope} flat>
          {scope}
        </Badge>
      ))}
    </span>
  );
}

function Revoke({ name, onRevoked }: { readonly name: string; readonly onRevoked: () => void }) {
  const isAsked = useSignal(false);
  async function revoke(): Promise<void> {
    isAsked.value = false;
    await council.keys.revoke(name);
    toast(`Revoked the key ${name}`, 'good');
    onRevoked();
  }
  return (
    <>
      <Button slim onClick={() => (isAsked.value = true)}>
        Revoke<span class="unseen"> {name}</span>
      </Button>
      {isAsked.value && (
        <Confirm
          title={`Revoke the key ${name}?`}
          verb="Revoke"
          keep="Keep it"
          onConfirm={() => void revoke().catch(toastError)}
          onClose={() => (isAsked.value = false)}
        >
          <p>
            Its sessions and open streams end at once, and no other key can have this name.
            {name === actor.value && ' It is the key with which you are signed in.'}
          </p>
        </Confirm>
      )}
    </>
  );
}
