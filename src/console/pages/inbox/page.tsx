/** The inbox: a card for each pause, of which the selected one is open. */
import { computed, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { countOf } from '../../record/counts.js';
import { pendingApprovals } from '../../shell/council.js';
import { areNotificationsOn, switchNotifications, whoseShown } from '../../shell/notifications.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { may, session } from '../../shell/session.js';
import { changeSettings, settings } from '../../shell/settings.js';
import { toast } from '../../shell/toasts.js';
import { decisions } from '../../shell/undo.js';
import { Button, Check, Segments } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, Failure, Loading, isServiceDown } from '../../ui/states.js';
import { serviceTime } from '../../ui/time.js';
import { commentId, PauseCard } from './card.js';
import { EditDialog } from './edit-dialog.js';
import { type Card, InboxStore, type InboxView } from './store.js';
import { usePageTitle } from '../../shell/title.js';
import { WaitingList } from './waiting-list.js';

function inboxStore(): InboxStore {
  return new InboxStore({
    waiting: pendingApprovals,
    decisions,
    notify: toast,
    view: computed(() => viewIn(query.value)),
    mayApprove: () => may('approve'),
    onSelect: ({ run_id: run, expected_seq: at }) => setQuery({ run, at }),
    now: () => serviceTime(),
    after: (ms, act) => window.setTimeout(act, ms),
  });
}

function viewIn(parameters: URLSearchParams): InboxView {
  const at = parameters.get('at');
  return { run: parameters.get('run'), at: at === null ? null : Number(at) };
}

export function InboxPage() {
  usePageTitle('Inbox');
  const store = useMemo(inboxStore, []);
  useEffect(() => store.start(), [store]);
  const isHelpOpen = useSignal(false);
  const showHelp = (): void => void (isHelpOpen.value = true);
  useShortcuts({ ...shortcutsOf(store), '?': showHelp }, () => settings.value.shortcuts && !store.isTyping);
  const { length } = store.cards.value.filter(({ late }) => late === null);
  return (
    <main id="page" class="inbox">
      <div class="page-head">
        <div>
          <h1>Inbox</h1>
          <p class="muted" role="status">
            {pendingApprovals.isKnown && length > 0 && `${countOf(length, 'run')} waiting, longest first`}
          </p>
        </div>
        <Controls onHelp={showHelp} />
      </div>
      <Absent run={store.absent.value} />
      <Cards store={store} />
      <EditDialog editing={store.editing} />
      {isHelpOpen.value && <Help onClose={() => (isHelpOpen.value = false)} />}
    </main>
  );
}

/** @param run the run of a link that does not wait, so that the user does not take another one for it */
function Absent({ run }: { readonly run: string | null }) {
  if (run === null) return null;
  return (
    <p class="notice wait" role="status">
      The run of this link does not wait for you. <a href={pageUrl(['runs', run])}>Open it</a>
    </p>
  );
}

function Cards({ store }: { readonly store: InboxStore }) {
  const { value: current } = store.current;
  useCardFocus(current?.key ?? null);
  const { fault } = pendingApprovals;
  if (fault !== null) return <Failure error={fault} onRetry={() => window.location.reload()} />;
  if (current === null) return <NoCard />;
  return (
    <div class="inbox-body">
      <PauseCard key={current.key} card={current} store={store} />
      <WaitingList store={store} current={current} />
    </div>
  );
}

/** Says that nothing waits, but only if the page knows the list. */
function NoCard() {
  if (isServiceDown.value) {
    return <Empty title="The service does not answer">What waits is not known until the service is back.</Empty>;
  }
  if (!pendingApprovals.isKnown) return <Loading what="the inbox" />;
  if (decisions.underway.value.length > 0) return <Empty title="Nothing else waits" />;
  return (
    <Empty
      title={
        session.value.status === 'in' && !session.value.isOpen && whoseShown.value === 'mine'
          ? 'Nothing waits for you'
          : 'Nothing waits'
      }
    >
      Runs in God Mode wait here for a decision before each step, and any run that reaches its budget.
    </Empty>
  );
}

/** Shows the selected card, and moves the focus to it unless the focus is elsewhere on the page. */
function useCardFocus(key: string | null): void {
  const before = useRef<string | null>(null);
  // A layout effect, because the next key may start a comment.
  useLayoutEffect(() => {
    const { activeElement: focused } = document;
    const card = document.querySelector<HTMLElement>('.pause-card[aria-current]');
    const isFree = focused === null || focused === document.body || focused.closest('.pause-card, h1') !== null;
    if (before.current !== null && card !== null) {
      if (isFree && !card.contains(focused)) card.focus();
      const { top } = card.getBoundingClientRect();
      if (top < 0 || top > window.innerHeight) card.scrollIntoView();
    }
    before.current = key;
  }, [key]);
}

function Controls({ onHelp }: { readonly onHelp: () => void }) {
  const isOpen = session.value.status === 'in' && session.value.isOpen;
  return (
    <div class="row">
      {!isOpen && may('approve') && (
        <Segments
          label="Pauses"
          value={whoseShown.value}
          options={[
            { value: 'mine', text: 'For me' },
            { value: 'all', text: 'All' },
          ]}
          onChange={(whose) => setQuery({ whose: whose === 'all' ? whose : null, run: null, at: null })}
        />
      )}
      <Check label="Notify me" checked={areNotificationsOn.value} onChange={(isOn) => void setNotifications(isOn)} />
      <Button tone="plain" label="Shortcuts" onClick={onHelp}>
        ?
      </Button>
    </div>
  );
}

async function setNotifications(isOn: boolean): Promise<void> {
  const areShown = await switchNotifications(isOn);
  if (isOn && !areShown)
    toast('The browser blocks notifications of this page. The page title shows the count.', 'wait');
}

type Shortcuts = Readonly<Record<string, () => void>>;

/** Shortcuts apply to the selected card. None approves a draft that is not shown yet. */
function shortcutsOf(store: InboxStore): Shortcuts {
  const onCurrent = (act: (card: Card) => unknown) => () => {
    const { value: card } = store.current;
    if (card !== null && !store.ignoresKeys) act(card);
  };
  return {
    j: () => store.step(1),
    k: () => store.step(-1),
    u: () => decisions.undoLast(),
    a: onCurrent((card) => store.isShown(card) && store.decide(card, 'approve')),
    e: onCurrent((card) => store.askForEdit(card)),
    r: onCurrent(({ key }) => {
      store.startRejecting();
      // At once, because the next key is the first of the comment.
      if (store.rejecting.value === key) document.getElementById(commentId(key))?.focus();
    }),
  };
}

function useShortcuts(shortcuts: Shortcuts, isIdle: () => boolean): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const act = shortcuts[event.key];
      if (act === undefined || event.repeat || isForAnother(event) || !isIdle()) return;
      event.preventDefault();
      act();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  });
}

/** Whether a key belongs to a field, the browser or a dialog. */
function isForAnother({ target, ctrlKey, metaKey, altKey, isComposing }: KeyboardEvent): boolean {
  const isTyped = target instanceof Element && target.closest('input:not([type=checkbox]), textarea, select') !== null;
  return isTyped || document.querySelector('dialog[open]') !== null || ctrlKey || metaKey || altKey || isComposing;
}

const HELP = [
  ['j', 'Next'],
  ['k', 'Previous'],
  ['a', 'Approve: the run continues'],
  ['e', 'Edit the draft and continue'],
  ['r', 'Enter a reason, then press Enter to reject: the run ends'],
  ['u', 'Undo the last decision, within 5 seconds'],
  ['?', 'Show these shortcuts'],
] as const;

function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Shortcuts and decisions" onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
      <dl class="inbox-keys stack close">
        {HELP.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <Check
        label="Use these shortcuts"
        checked={settings.value.shortcuts}
        onChange={(shortcuts) => changeSettings({ shortcuts })}
      />
      <Check
        label="Wait 5 seconds before a decision is sent, to undo it"
        checked={settings.value.undo}
        onChange={(undo) => changeSettings({ undo })}
      />
    </Dialog>
  );
}
