/** What the user sets for this browser. */
import { switchNotifications } from '../../shell/notifications.js';
import type { Theme } from '../../shell/settings.js';
import { changeSettings, settings } from '../../shell/settings.js';
import { actor } from '../../shell/session.js';
import { toast } from '../../shell/toasts.js';
import { Check, Segments } from '../../ui/controls.js';

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
