/** Notifies users of new pauses with browser notifications and a count in the title, if they switch that on. */
import { computed, effect, signal, untracked } from '@preact/signals';
import type { Approval } from '../../generated/schemas.js';
import { titledTopic } from '../../run/titled-topic.js';
import { pendingApprovals } from './council.js';
import { navigate, pageUrl, path, query } from './router.js';
import { actor, may, lockIfUnauthorized } from './session.js';
import { changeSettings, settings } from './settings.js';
import { countInTitle } from './title.js';
import { serviceTime } from '../ui/time.js';
import { pauseKey, type Whose } from './pending-approvals.js';

/** Whether the user has switched notifications on in this browser. */
export const areNotificationsOn = computed(() => settings.value.notifications);

/** @returns whether the browser shows notifications; the title shows the count in any case */
export async function switchNotifications(wanted: boolean): Promise<boolean> {
  changeSettings({ notifications: wanted });
  return wanted && canNotify() && (await Notification.requestPermission()) === 'granted';
}

/** Whose pauses the inbox shows: all, for a key that decides none. */
export const whoseShown = computed<Whose>(() =>
  query.value.get('whose') === 'all' || !may('approve') ? 'all' : 'mine',
);

/** Follows the pauses while the page is visible or notifications are on. Call once. */
export function followApprovals(): void {
  const isVisible = signal(!document.hidden);
  document.addEventListener('visibilitychange', () => (isVisible.value = !document.hidden));
  const whose = computed<Whose>(() => (path.value[0] === 'inbox' ? whoseShown.value : 'mine'));
  effect(() => {
    const [of, who] = [whose.value, actor.value];
    if (!may('read') || !(isVisible.value || areNotificationsOn.value)) return undefined;
    return untracked(() => pendingApprovals.follow(of, who));
  });
  effect(() => lockIfUnauthorized(pendingApprovals.fault));
  effect(showCountInTitle);
  notifyOfNew(Date.now());
}

function showCountInTitle(): void {
  countInTitle.value = areNotificationsOn.value ? (pendingApprovals.count.value ?? 0) : 0;
}

function notifyOfNew(sinceMs: number): void {
  let known = new Set<string>();
  effect(() => {
    const pauses = pendingApprovals.pauses.value.filter(
      (each) => each.may_decide && Date.parse(each.waiting_since) >= serviceTime(sinceMs),
    );
    const added = pauses.filter((pause) => !known.has(pauseKey(pause)));
    known = new Set(pauses.map(pauseKey));
    const isShown =
      areNotificationsOn.peek() && !document.hasFocus() && canNotify() && Notification.permission === 'granted';
    if (isShown) added.forEach(notify);
  });
}

/** Pages over plain HTTP from another host cannot. */
function canNotify(): boolean {
  return 'Notification' in window;
}

function notify(pause: Approval): void {
  const { run_id: run } = pause;
  const notification = new Notification('A run waits for your decision', { body: titledTopic(pause), tag: run });
  notification.onclick = () => {
    window.focus();
    navigate(pageUrl(['inbox'], { run }));
  };
}
