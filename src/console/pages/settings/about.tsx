/** The state of the service. */
import { CouncilError } from '../../../client/errors.js';
import { council } from '../../shell/council.js';
import { pageUrl } from '../../shell/router.js';
import { Badge } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';

interface State {
  readonly isReady: boolean;
  readonly text: string;
}

export function About() {
  const state = useResource('ready', stateOfService);
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
      <p>
        <a href={pageUrl(['models'])}>Providers and models</a>
      </p>
    </section>
  );
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
