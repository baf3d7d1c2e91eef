/** Settings: this browser's, and the keys, webhooks and state of the service as far as the user may see them. */
import type { ComponentType } from 'preact';
import { query, setQuery, pageUrl } from '../../shell/router.js';
import { usePageTitle } from '../../shell/title.js';
import { Tabs } from '../../ui/tabs.js';
import { KeyList } from './keys.js';
import { Oversight } from './oversight.js';
import { WebhookList } from './webhooks.js';
import { CouncilError } from '../../../client/errors.js';
import { council } from '../../shell/council.js';
import type { About as FactsOfService } from '../../../generated/schemas.js';
import type { Fact } from '../../ui/controls.js';
import { Badge, Facts, Check, Segments } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { dateTimeText } from '../../ui/time.js';
import { switchNotifications } from '../../shell/notifications.js';
import type { Theme } from '../../shell/settings.js';
import { changeSettings, settings } from '../../shell/settings.js';
import { actor } from '../../shell/session.js';
import { toast } from '../../shell/toasts.js';

interface Section {
  readonly value: string;
  readonly text: string;
  readonly Shown: ComponentType;
}

const SECTIONS: readonly [Section, ...Section[]] = [
  { value: 'browser', text: 'This browser', Shown: Appearance },
  { value: 'keys', text: 'Keys', Shown: KeyList },
  { value: 'webhooks', text: 'Webhooks', Shown: WebhookList },
  { value: 'decisions', text: 'Decisions', Shown: Oversight },
  { value: 'about', text: 'About', Shown: About },
];

export function SettingsPage() {
  usePageTitle('Settings');
  const [first] = SECTIONS;
  const chosen = SECTIONS.find(({ value }) => value === query.value.get('tab')) ?? first;
  return (
    <main id="page">
      <div class="page-head">
        <h1>Settings</h1>
      </div>
      <div class="settings">
        <Tabs
          label="Settings"
          value={chosen.value}
          options={SECTIONS}
          onChange={(tab) => setQuery({ tab: tab === first.value ? null : tab })}
        >
          <chosen.Shown />
        </Tabs>
      </div>
    </main>
  );
}

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

const THEMES: readonly { readonly value: Theme; readonly text: string }[] = [
  { value: 'system', text: 'As the system' },
  { value: 'light', text: 'Light' },
  { value: 'dark', text: 'Dark' },
];

export function Appearance() {
  const { theme, shortcuts, undo, notifications } = settings.value;
  return (
    <div class="card stack">
      <p class="muted">
        This browser keeps these settings{actor.value !== null && ` for the key ${actor.value}`}. Other users do not see
        them.
      </p>
      <section class="stack close" aria-label="Theme">
        <h2>Theme</h2>
        <Segments
          label="Theme"
          value={theme}
          options={THEMES}
          onChange={(chosen) => changeSettings({ theme: chosen })}
        />
      </section>
      <section class="stack close" aria-label="Decisions">
        <h2>Decisions</h2>
        <Check
          label="Wait 5 seconds before a decision is sent, so that I can undo it"
          checked={undo}
          onChange={(isOn) => changeSettings({ undo: isOn })}
        />
        <Check
          label="Single letters are shortcuts in the inbox"
          checked={shortcuts}
          onChange={(isOn) => changeSettings({ shortcuts: isOn })}
        />
        <Check
          label="Notify me when a run waits for my decision"
          checked={notifications}
          onChange={(isOn) => void notify(isOn)}
        />
      </section>
    </div>
  );
}

async function notify(isOn: boolean): Promise<void> {
  const areShown = await switchNotifications(isOn);
  if (isOn && !areShown) {
    toast('The browser blocks notifications of this page. The page title shows the count.', 'wait');
  }
}
