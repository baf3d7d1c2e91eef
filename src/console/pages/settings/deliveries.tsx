/** The last deliveries of a webhook. */
import type { WebhookDelivery } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { Table } from '../../ui/table.js';
import { Ago } from '../../ui/time.js';
import { eventName } from './event-names.js';

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
