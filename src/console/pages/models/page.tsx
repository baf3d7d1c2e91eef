/** The providers of models: their state, default models and calls in flight, as this instance sees them. */
import { useEffect } from 'preact/hooks';
import type { ProviderRecord } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { usePageTitle } from '../../shell/title.js';
import { Badge } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { Table } from '../../ui/table.js';

const REFRESH_MS = 5_000;

export function ModelsPage() {
  usePageTitle('Models');
  const providers = useResource('providers', (signal) => council.providers({ signal }));
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (!document.hidden) providers.reload();
    }, REFRESH_MS);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <main id="page">
      <div class="page-head">
        <div>
          <h1>Models</h1>
          <p class="muted">Members name a model as provider/model. Without a model they ask the default provider.</p>
        </div>
      </div>
      <WhenLoaded of={providers} what="the providers">
        {(found) => <ProviderTable providers={found} />}
      </WhenLoaded>
      <Prices />
    </main>
  );
}

const COLUMNS = ['Model', 'Input', 'Output', 'From cache', 'To cache', 'Source', 'Date'];

function Prices() {
  const prices = useResource('prices', (signal) => council.prices({ signal }));
  return (
    <section class="card stack close wide-table" aria-labelledby="prices" tabIndex={0}>
      <h2 id="prices">Prices</h2>
      <p class="small muted">
        US dollars per million tokens. PRICES_FILE adds to the table that comes with the service.
      </p>
      <WhenLoaded of={prices} what="the prices">
        {(found) => (
          <Table heads={COLUMNS} numbers={COLUMNS.slice(1, 5)}>
            {found.map((price) => (
              <tr key={price.model}>
                <th scope="row" class="mono">
                  {price.model}
                </th>
                <td class="numeric">{price.input_usd}</td>
                <td class="numeric">{price.output_usd}</td>
                <td class="numeric">{price.cache_read_usd}</td>
                <td class="numeric">{price.cache_write_usd}</td>
                <td class="small break">{price.source ?? price.table}</td>
                <td class="small">{price.read_at ?? '–'}</td>
              </tr>
            ))}
          </Table>
        )}
      </WhenLoaded>
    </section>
  );
}

const STATES = {
  ok: { tone: 'good', text: 'Answers' },
  unknown: { tone: 'plain', text: 'Not asked yet' },
  failing: { tone: 'bad', text: 'Last call failed' },
} as const;

function ProviderTable({ providers }: { readonly providers: readonly ProviderRecord[] }) {
  return (
    <section class="card wide-table" aria-label="Providers" tabIndex={0}>
      <Table
        heads={['Provider', 'State', 'Default model', 'Address', 'API', 'Calls in flight']}
        numbers={['Calls in flight']}
      >
        {providers.map((provider) => (
          <ProviderRow key={provider.name} provider={provider} />
        ))}
      </Table>
    </section>
  );
}

function ProviderRow({ provider }: { readonly provider: ProviderRecord }) {
  const { name, api, host, state, detail, default_model: model, calls_in_flight: calls } = provider;
  const { tone, text } = STATES[state];
  return (
    <tr>
      <th scope="row">
        {name} {provider.default && <Badge flat>default</Badge>}
      </th>
      <td>
        <Badge tone={tone}>{text}</Badge>
        {detail !== null && <div class="small muted break">{detail}</div>}
      </td>
      <td class="mono break">{name === 'offline' ? '–' : `${name}/${model}`}</td>
      <td class="mono break">{host ?? 'this process'}</td>
      <td>{api}</td>
      <td class="numeric">{calls}</td>
    </tr>
  );
}
