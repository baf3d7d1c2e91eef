/** The webhooks of the service: register, see deliveries, retry, rotate the secret, delete. */
import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import type { RunEvent } from '../../../client/run-events.js';
import type { NewWebhook, Webhook, WebhookDelivery } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { may } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button, Field } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';
import { useResource } from '../../ui/resource.js';
import { Empty, WhenLoaded, errorText } from '../../ui/states.js';
import { Ago } from '../../ui/time.js';
import { SecretNotice } from './secret-notice.js';
import { pageUrl } from '../../shell/router.js';
import { Table } from '../../ui/table.js';

export function WebhookList() {
  if (!may('admin')) {
    return (
      <Empty title="Your key does not show webhooks">
        <p>A key with the scope admin registers them: programs elsewhere then get events of runs.</p>
      </Empty>
    );
  }
  return <Webhooks />;
}

function Webhooks() {
  const webhooks = useResource('webhooks', (signal) => council.webhooks.list({ signal }));
  const secret = useSignal<NewWebhook | null>(null);
  const onSecret = (made: NewWebhook): void => {
    secret.value = made;
    webhooks.reload();
  };
  return (
    <div class="stack">
      {secret.value !== null && (
        <SecretNotice
          title={`Secret of ${secret.value.url}`}
          name="Secret"
          secret={secret.value.secret}
          onClose={() => (secret.value = null)}
        />
      )}
      <RegisterForm onRegistered={onSecret} />
      <WhenLoaded of={webhooks} what="the webhooks">
        {(found) => (
          <ul class="stack" aria-label="Webhooks">
            {found.map((webhook) => (
              <WebhookCard key={webhook.id} {...{ webhook, onSecret }} onDeleted={webhooks.reload} />
            ))}
          </ul>
        )}
      </WhenLoaded>
    </div>
  );
}

function RegisterForm({ onRegistered }: { readonly onRegistered: (made: NewWebhook) => void }) {
  const url = useSignal('');
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  async function register(event: Event): Promise<void> {
    event.preventDefault();
    isBusy.value = true;
    try {
      onRegistered(await council.webhooks.register({ url: url.value.trim() }));
      [url.value, fault.value] = ['', null];
    } catch (error) {
      fault.value = errorText(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <form class="card stack close" onSubmit={(event) => void register(event)}>
      <Field
        label="Address of the receiver"
        hint="It gets an event when a run waits, completes or fails. Use the API to choose other events, or one council."
        fault={fault.value}
      >
        {(control) => (
          <input
            {...control}
            class="input"
            type="url"
            placeholder="https://example.com/hooks/council"
            value={url.value}
            onInput={(event) => (url.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="row">
        <Button type="submit" tone="primary" disabled={isBusy.value || url.value.trim() === ''}>
          Add the webhook
        </Button>
      </div>
    </form>
  );
}

interface WebhookCardProps {
  readonly webhook: Webhook;
  readonly onSecret: (made: NewWebhook) => void;
  readonly onDeleted: () => void;
}

function WebhookCard({ webhook, onSecret, onDeleted }: WebhookCardProps) {
  const { id, url, types, disabled, created_at: createdAt } = webhook;
  const asked = useSignal<'delete' | 'rotate' | null>(null);
  const areDeliveriesShown = useSignal(false);
  async function remove(): Promise<void> {
    await council.webhooks.remove(id);
    toast('Deleted the webhook', 'good');
    onDeleted();
  }
  async function rotate(): Promise<void> {
    onSecret(await council.webhooks.rotate(id));
  }
  return (
    <li class="card stack close">
      <div class="row spread">
        <strong class="break">{url}</strong>
        {disabled && <Badge tone="bad">Disabled: the receiver answered 410</Badge>}
      </div>
      <p class="small muted break">
        <span title={types.join(', ')}>Sends: {types.map(eventName).join(', ')}</span> · added <Ago at={createdAt} />
      </p>
      <div class="row">
        <Button
          slim
          pressed={areDeliveriesShown.value}
          onClick={() => (areDeliveriesShown.value = !areDeliveriesShown.value)}
        >
          Deliveries
        </Button>
        <Button slim onClick={() => (asked.value = 'rotate')}>
          New secret
        </Button>
        <Button slim tone="plain" label={`Delete the webhook ${url}`} onClick={() => (asked.value = 'delete')}>
          Delete
        </Button>
      </div>
      {areDeliveriesShown.value && <Deliveries webhookId={id} />}
      <Questions url={url} asked={asked} onDelete={remove} onRotate={rotate} />
    </li>
  );
}

interface QuestionsProps {
  readonly url: string;
  readonly asked: Signal<'delete' | 'rotate' | null>;
  readonly onDelete: () => Promise<void>;
  readonly onRotate: () => Promise<void>;
}

/** The dialogs before a deletion and before a new secret. */
function Questions({ url, asked, onDelete, onRotate }: QuestionsProps) {
  const onClose = (): void => void (asked.value = null);
  const confirmed = (act: () => Promise<void>) => (): void => {
    onClose();
    act().catch(toastError);
  };
  return (
    <>
      {asked.value === 'delete' && (
        <Confirm
          title="Delete this webhook?"
          verb="Delete"
          keep="Keep it"
          onConfirm={confirmed(onDelete)}
          onClose={onClose}
        >
          <p class="break">Waiting deliveries to {url} end.</p>
        </Confirm>
      )}
      {asked.value === 'rotate' && (
        <Confirm
          title="Give it a new secret?"
          verb="Make a new secret"
          keep="Keep the old one"
          onConfirm={confirmed(onRotate)}
          onClose={onClose}
        >
          <p>For 24 hours each delivery has two signatures, by the old secret and by the new one.</p>
        </Confirm>
      )}
    </>
  );
}

const TONES = { waiting: 'wait', delivered: 'good', failed: 'bad' } as const;

export function Deliveries({ webhookId }: { readonly webhookId: string }) {
  const found = useResource(webhookId, (signal) => council.webhooks.deliveries(webhookId, { signal }));
  async function retry(delivery: WebhookDelivery): Promise<void> {
    await council.webhooks.retry(webhookId, delivery.id);
    toast('The delivery is sent again', 'good');
    found.reload();
  }
  return (
    <WhenLoaded of={found} what="the deliveries">
      {(deliveries) =>
        deliveries.length === 0 ? (
          <p class="small muted">No events yet.</p>
        ) : (
          <section class="wide-table" aria-label="Deliveries" tabIndex={0}>
            <Table heads={['Event', 'Run', 'State', 'Attempts', 'Last attempt', '']}>
              {deliveries.map((delivery) => (
                <Row key={delivery.id} delivery={delivery} onRetry={() => void retry(delivery).catch(toastError)} />
              ))}
            </Table>
          </section>
        )
      }
    </WhenLoaded>
  );
}

function Row({ delivery, onRetry }: { readonly delivery: WebhookDelivery; readonly onRetry: () => void }) {
  const { type, run_id: runId, seq, status, attempts, last_attempt_at: lastAt, error } = delivery;
  const name = eventName(type);
  return (
    <tr>
      <th scope="row" title={type}>
        {name}
      </th>
      <td>
        <a href={pageUrl(['runs', runId], { at: seq })}>Show</a>
      </td>
      <td>
        <Badge tone={TONES[status]}>{status}</Badge>
        {error !== null && <div class="small muted break">{error}</div>}
      </td>
      <td class="numeric">{attempts}</td>
      <td class="small">{lastAt === null ? '–' : <Ago at={lastAt} />}</td>
      <td>
        <Button slim onClick={onRetry}>
          Retry<span class="unseen"> {name}</span>
        </Button>
      </td>
    </tr>
  );
}

/** A type as words, such as `run waits`. An unknown type stays. */
function eventName(type: string): string {
  return Object.entries(EVENT_NAMES).find(([known]) => known === type)?.[1] ?? type;
}

/** The names of a run's events for people; programs get the types. */
const EVENT_NAMES: Readonly<Record<RunEvent['type'], string>> = {
  RunRequested: 'run requested',
  RunClaimed: 'run claimed by an instance',
  RunReleased: 'run released by its instance',
  RunStarted: 'run started',
  RunResumed: 'run resumed',
  NodeStarted: 'member started',
  CallReserved: 'budget reserved for a call',
  ToolCalled: 'tool called',
  ChildStarted: 'run of a council started',
  ChildEnded: 'run of a council ended',
  NodeCompleted: 'member finished',
  NodeFailed: 'member failed',
  QuorumReached: 'enough members answered',
  PanelClosed: 'panel closed',
  RunPaused: 'run waits',
  VoteCast: 'vote cast',
  PauseEscalated: 'deadline of a pause passed',
  GateDecided: 'decision made',
  RunCompleted: 'run completed',
  RunFailed: 'run failed',
};
