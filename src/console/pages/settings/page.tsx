/** Settings: this browser's, and the keys, webhooks and state of the service as far as the user may see them. */
import type { ComponentType } from 'preact';
import { query, setQuery } from '../../shell/router.js';
import { usePageTitle } from '../../shell/title.js';
import { Tabs } from '../../ui/tabs.js';
import { About } from './about.js';
import { Appearance } from './appearance.js';
import { KeyList } from './keys.js';
import { WebhookList } from './webhooks.js';

interface Section {
  readonly value: string;
  readonly text: string;
  readonly Shown: ComponentType;
}

const SECTIONS: readonly [Section, ...Section[]] = [
  { value: 'browser', text: 'This browser', Shown: Appearance },
  { value: 'keys', text: 'Keys', Shown: KeyList },
  { value: 'webhooks', text: 'Webhooks', Shown: WebhookList },
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
