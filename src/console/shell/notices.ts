/** Tells of what waits to those who look elsewhere: by the browser, and by a number in the title. Only when asked for. */
import { computed, effect, signal, untracked } from '@preact/signals';
import type { Approval } from '../../generated/schemas.js';
import { waiting } from './council.js';
import { keep, kept } from './kept.js';
import { navigate, pageUrl, path, query } from './router.js';
import { actor, may, onRefused } from './session.js';
import { serviceTime } from '../ui/time.js';
import { pauseKey, type Whose } from './waiting.js';

const KEPT_AS = 'council.notices';

/** Whether notices are wanted, in this browser. */
export const areWanted = signal(kept(KEPT_AS) === true);

/** Turns them on or off. @returns whether the browser shows them; in the title the number stands in any case */
export async function wantNotices(wanted: boolean): Promise<boolean> {
  areWanted.value = wanted;
  keep(KEPT_AS, wanted);
  return wanted && canNotify() && (await Notification.requestPermission()) === 'granted';
}

/** Follows what waits for as long as somebody looks, or wants notices. To be called once. */
export function startWaiting(): void {
  const isLookedAt = signal(!document.hidden);
  document.addEventListener('visibilitychange', () => (isLookedAt.value = !document.hidden));
  const whose = computed<Whose>(() =>
    path.value[0] === 'inbox' && query.value.get('whose') === 'all' ? 'all' : 'mine',
  );
  effect(() => {
    const [of, who] = [whose.value, actor.value];
    if (!may('read') || !(isLookedAt.value || areWanted.value)) return undefined;
    return untracked(() => waiting.follow(of, who));
  });
  effect(() => onRefused(waiting.fault));
  effect(numberTheTitle);
  tellOfNew(Date.now());
}

function numberTheTitle(): void {
  const count = areWanted.value ? (waiting.count.value ?? 0) : 0;
  document.title = (count > 0 ? `(${count}) ` : '') + document.title.replace(/^\(\d+\) /, '');
}

function tellOfNew(sinceMs: number): void {
  let known = new Set<string>();
  effect(() => {
    const pauses = waiting.pauses.value.filter(
      (each) => each.may_decide && Date.parse(each.waiting_since) >= serviceTime(sinceMs),
    );
    const fresh = pauses.filter((pause) => !known.has(pauseKey(pause)));
    known = new Set(pauses.map(pauseKey));
    const isShown = areWanted.peek() && !document.hasFocus() && canNotify() && Notification.permission === 'granted';
    if (isShown) fresh.forEach(notify);
  });
}

/** Pages that have come by plain HTTP from elsewhere cannot. */
function canNotify(): boolean {
  return 'Notification' in window;
}

function notify({ run_id: run, input_topic: body }: Approval): void {
  const notice = new Notification('A run waits for you', { body, tag: run });
  notice.onclick = () => {
    window.focus();
    navigate(pageUrl(['inbox'], { run }));
  };
}
