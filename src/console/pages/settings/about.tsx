/** The state of the service. */
import { CouncilError } from '../../../client/errors.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import type { About as FactsOfService } from '../../../generated/schemas.js';
import type { Fact } from '../../ui/controls.js';
import { Badge, Facts } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { dateTimeText } from '../../ui/time.js';

interface State {
  readonly isReady: boolean;
  readonly text: string;
}

export function About() {
  const state = useResource('ready', stateOfService);
  const about = useResource('about', (signal) => council.about({ signal }));
  return (
    <section class="card stack" aria-label="This service">
      <WhenLoaded of={state} what="the state of the service">
        {({ isReady, text }) => (
          <div class="row">
            <Badge tone={isReady ? 'good' : 'bad'}>{isReady ? 'Ready' : 'Not ready'}</Badge>
            <span class="break">{text}</span>
          </div>
        )}
      </WhenLoaded>
      <WhenLoaded of={about} what="the facts of the service">
        {(found) => <Facts facts={factsOf(found)} />}
      </WhenLoaded>
      <p>
        <a href={pageUrl(['models'])}>Providers and models</a>
      </p>
    </section>
  );
}

function factsOf({ version, node, log, started_at: startedAt, ...found }: FactsOfService): readonly Fact[] {
  const size = log.bytes === null ? '' : `, ${(log.bytes / 1e6).toFixed(1)} MB`;
  return [
    ['Version', version],
    ['Node.js', node],
    [
      'Log',
      `${log.kind === 'embedded' ? 'embedded' : 'EventStoreDB'}${size}, last event at ${log.position ?? 'an unknown place'}`,
    ],
    ['Started', dateTimeText(startedAt)],
    [
      'Default model',
      found.offline ? 'offline: no language model is asked' : `${found.default_provider}/${found.default_model}`,
    ],
  ];
}

async function stateOfService(signal: AbortSignal): Promise<State> {
  try {
    const { models_unreachable: unreachable = [] } = await council.ready({ signal });
    if (unreachable.length === 0)
      return { isReady: true, text: 'The log answers, and the lists have caught up with it.' };
    return { isReady: true, text: `Runs wait for models that do not respond: ${unreachable.join(', ')}` };
  } catch (error) {
    if (error instanceof CouncilError) return { isReady: false, text: error.detail };
    throw error;
  }
}
