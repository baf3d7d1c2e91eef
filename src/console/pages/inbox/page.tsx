/** What waits for a human: a card for each pause, one of them open, decided by a click or a key. */
import { computed, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { countOf } from '../../record/counts.js';
import { council, waiting } from '../../shell/council.js';
import { areWanted, wantNotices } from '../../shell/notices.js';
import { query, setQuery } from '../../shell/router.js';
import { may, onRefused, session } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Button, Check, Segments } from '../../ui/controls.js';
import { Dialog } from '../../ui/dialog.js';
import { Empty, Failure, Loading } from '../../ui/states.js';
import { serviceTime } from '../../ui/time.js';
import { commentId, PauseCard } from './card.js';
import { EditDialog } from './edit-dialog.js';
import { SeenDrafts } from './seen-drafts.js';
import { type Card, InboxStore, type InboxView } from './store.js';

/** Cards at first, and more at a time. */
const SHOWN = 30;

const seen = new SeenDrafts();

function inboxStore(): InboxStore {
  return new InboxStore({
    ...{ client: council, waiting, tell: toast },
    view: computed(() => viewIn(query.value)),
    mayApprove: () => may('approve'),
    onLook: ({ run_id: run, expected_seq: at }) => setQuery({ run, at }),
    onFault(error) {
      onRefused(error);
      toastError(error);
    },
    now: () => serviceTime(),
    after: (ms, act) => window.setTimeout(act, ms),
  });
}

function viewIn(asked: URLSearchParams): InboxView {
  const at = asked.get('at');
  return { run: asked.get('run'), at: at === null ? null : Number(at) };
}

export function InboxPage() {
  const store = useMemo(inboxStore, []);
  useEffect(() => store.start(), [store]);
  const isHelpOpen = useSignal(false);
  const showHelp = (): void => void (isHelpOpen.value = true);
  useKeys({ ...keysOf(store), '?': showHelp }, () => !store.isTyping);
  const { length } = store.cards.value;
  return (
    <main id="page" class="inbox">
      <div class="page-head">
        <div>
          <h1>Inbox</h1>
          <p class="muted" role="status">
            {waiting.isKnown && length > 0 && `${countOf(length, 'run')}, longest wait first`}
          </p>
        </div>
        <Controls onHelp={showHelp} />
      </div>
      <Cards store={store} />
      <EditDialog store={store} />
      {isHelpOpen.value && <Help onClose={() => (isHelpOpen.value = false)} />}
    </main>
  );
}

function Cards({ store }: { readonly store: InboxStore }) {
  const shown = useSignal(SHOWN);
  const { value: cards } = store.cards;
  const { value: current } = store.current;
  useFollowingFocus(current?.key ?? null);
  if (waiting.fault !== null) return <Failure error={waiting.fault} onRetry={() => window.location.reload()} />;
  if (!waiting.isKnown) return <Loading what="what waits" />;
  if (current === null) return <Empty title="Nothing waits">Runs in God Mode wait here before each step.</Empty>;
  const last = Math.max(shown.value, cards.indexOf(current) + 1);
  return (
    <div class="stack">
      {cards.slice(0, last).map((card) => (
        <PauseCard key={card.key} card={card} isCurrent={card.key === current.key} store={store} seen={seen} />
      ))}
      {cards.length > last && (
        <Button onClick={() => (shown.value = last + SHOWN)}>Show more: {cards.length - last} wait still</Button>
      )}
    </div>
  );
}

/** Moves the focus on to the next card that is looked at, unless it is there or elsewhere on the page. */
function useFollowingFocus(key: string | null): void {
  const before = useRef<string | null>(null);
  // Before the next key comes: it may be the first of a comment.
  useLayoutEffect(() => {
    const { activeElement: focused } = document;
    const card = document.querySelector<HTMLElement>('.pause-card[aria-current]');
    const isFree = focused === null || focused === document.body || focused.closest('.pause-card') !== null;
    if (before.current !== null && isFree && card?.contains(focused) === false) card.focus();
    before.current = key;
  }, [key]);
}

function Controls({ onHelp }: { readonly onHelp: () => void }) {
  const { value: asked } = query;
  const isOpen = session.value.status === 'in' && session.value.isOpen;
  return (
    <div class="row">
      {!isOpen && (
        <Segments
          label="Whose"
          value={asked.get('whose') === 'all' ? 'all' : 'mine'}
          options={[
            { value: 'mine', text: 'Mine' },
            { value: 'all', text: 'Everybody’s' },
          ]}
          onChange={(whose) => setQuery({ whose: whose === 'all' ? whose : null, run: null, at: null })}
        />
      )}
      <Check label="Tell me of new ones" checked={areWanted.value} onChange={(wanted) => void askForNotices(wanted)} />
      <Button tone="plain" label="Keys" onClick={onHelp}>
        ?
      </Button>
    </div>
  );
}

async function askForNotices(wanted: boolean): Promise<void> {
  const areShown = await wantNotices(wanted);
  if (wanted && !areShown) toast('The browser shows no notices of this page: see the number in its title.', 'wait');
}

// Keys.

type Keys = Readonly<Record<string, () => void>>;

/** Keys mean the card that is looked at, also where it is not drawn as such yet. */
function keysOf(store: InboxStore): Keys {
  const onCurrent = (act: (card: Card) => unknown) => () => {
    const { value: card } = store.current;
    if (card !== null && !store.isSurprise) act(card);
  };
  return {
    j: () => store.step(1),
    k: () => store.step(-1),
    a: onCurrent((card) => store.decide(card, 'approve')),
    e: onCurrent((card) => store.askForEdit(card)),
    r: onCurrent(({ key }) => {
      store.askWhy();
      // At once: the next key is the first of the comment.
      if (store.rejecting.value === key) document.getElementById(commentId(key))?.focus();
    }),
  };
}

function useKeys(keys: Keys, isIdle: () => boolean): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const act = keys[event.key];
      if (act === undefined || event.repeat || isForAnother(event) || !isIdle()) return;
      event.preventDefault();
      act();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  });
}

/** Whether a key is typed into a field, meant for the browser, or for a dialog. */
function isForAnother({ target, ctrlKey, metaKey, altKey, isComposing }: KeyboardEvent): boolean {
  const isTyped = target instanceof Element && target.closest('input:not([type=checkbox]), textarea, select') !== null;
  return isTyped || document.querySelector('dialog[open]') !== null || ctrlKey || metaKey || altKey || isComposing;
}

const HELP = [
  ['j', 'Next'],
  ['k', 'Previous'],
  ['a', 'Approve: the run goes on'],
  ['e', 'Edit the state, then go on'],
  ['r', 'Say why, then Enter rejects: the run ends'],
  ['?', 'These keys'],
] as const;

function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
      <dl class="inbox-keys">
        {HELP.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
