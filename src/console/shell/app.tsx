/** The frame of every page: navigation, session and the page itself. */
import type { ComponentType } from 'preact';
import { useSignal, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { RunPage } from '../pages/run/page.js';
import { RunsPage } from '../pages/runs/page.js';
import { Button, TextBox } from '../ui/controls.js';
import { Later, chunk, useChunk } from '../ui/chunks.js';
import { Icon } from '../ui/icon.js';
import { Failure, ServiceDown, Loading, errorText, isServiceDown } from '../ui/states.js';
import { pendingApprovals, council } from './council.js';
import { hasUnsavedChanges, pageUrl, path } from './router.js';
import { actor, session, signIn, signOut, may } from './session.js';
import { usePageTitle } from './title.js';
import { Toasts, toastError } from './toasts.js';
import { UnderwayMessages, decisions } from './undo.js';

/** A page of the console. It has one `main` with one `h1`. */
interface Page {
  /** The current item of the navigation. */
  readonly place: string;
  readonly Shown: ComponentType;
}

const RUNS: Page = { place: 'Runs', Shown: RunsPage };
const DOCUMENTS = later('Documents', async () => (await import('../pages/documents/page.js')).DocumentsPage);

/** Pages by path; `*` is an id. */
const PAGES: Readonly<Record<string, Page>> = {
  '': RUNS,
  // The path of a run without its id.
  runs: RUNS,
  'runs/*': { place: 'Runs', Shown: RunPage },
  compare: later('Runs', async () => (await import('../pages/compare/page.js')).ComparePage),
  inbox: later('Inbox', async () => (await import('../pages/inbox/page.js')).InboxPage),
  blueprints: later('Councils', async () => (await import('../pages/blueprints/page.js')).BlueprintsPage),
  'blueprints/*': later('Councils', async () => (await import('../pages/blueprint/page.js')).BlueprintPage),
  documents: DOCUMENTS,
  'documents/*': DOCUMENTS,
  overview: later('Overview', async () => (await import('../pages/overview/page.js')).OverviewPage),
  models: later('Models', async () => (await import('../pages/models/page.js')).ModelsPage),
  settings: later('Settings', async () => (await import('../pages/settings/page.js')).SettingsPage),
};

const NAVIGATION = [
  { place: 'Runs', icon: 'runs', parts: [] },
  { place: 'Inbox', icon: 'inbox', parts: ['inbox'] },
  { place: 'Councils', icon: 'councils', parts: ['blueprints'] },
  { place: 'Documents', icon: 'documents', parts: ['documents'] },
  { place: 'Overview', icon: 'overview', parts: ['overview'] },
  { place: 'Models', icon: 'models', parts: ['models'] },
] as const;

/** Loads when it is first opened. */
const palette = chunk(async () => (await import('./palette.js')).Palette);

export function App() {
  const page = pageAt(path.value);
  const isIn = session.value.status === 'in';
  const isSearching = useSignal(false);
  useCtrlK(() => (isSearching.value = isIn && !isSearching.value));
  const nav = useRef<HTMLElement>(null);
  const count = session.value.status === 'in' ? (pendingApprovals.count.value ?? 0) : 0;
  // On a phone the row of pages is longer than the window, and the count moves the pages after it.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [page?.place, count > 0]);
  return (
    <div class={isServiceDown.value ? 'frame service-down' : 'frame'}>
      <a class="skip" href="#page">
        Skip to the content
      </a>
      <ServiceDown />
      <header>
        <div class="bar">
          <a class="brand" href={pageUrl([])}>
            <Logo />
            Council
          </a>
          {session.value.status !== 'locked' && (
            <nav aria-label="Pages" ref={nav}>
              {NAVIGATION.map(({ place, icon, parts }) => (
                <a key={place} href={pageUrl(parts)} aria-current={page?.place === place ? 'page' : undefined}>
                  <Icon name={icon} />
                  {place}
                  {place === 'Inbox' && count > 0 && <span class="count">{count}</span>}
                </a>
              ))}
            </nav>
          )}
          {isIn && (
            <Button tone="plain" slim title="Go to" onClick={() => (isSearching.value = true)}>
              <Icon name="search" />
              <span class="unseen">Go to</span>
              <kbd aria-hidden="true">Ctrl K</kbd>
            </Button>
          )}
          {isIn && (
            <a class="button plain slim" href={pageUrl(['settings'])} aria-label="Settings" title="Settings">
              <Icon name="settings" />
            </a>
          )}
          <Who />
        </div>
        <OfflineMark />
      </header>
      <Content page={page} />
      {isSearching.value && (
        <Later of={palette}>{(Palette) => <Palette onClose={() => (isSearching.value = false)} />}</Later>
      )}
      <Toasts>
        <UnderwayMessages />
      </Toasts>
    </div>
  );
}

/** Acts on Ctrl K, or Command K. */
function useCtrlK(act: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      act();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  });
}

function Content({ page }: { readonly page: Page | null }) {
  const { value: now } = session;
  if (now.status === 'asking') return <LoadingPage />;
  const isLocked = now.status === 'locked';
  const who = isLocked ? now.left : now.session.actor;
  // The page stays in the tab while its user signs in again, so that unsaved changes survive the end of a session.
  const keepsChanges = isLocked && who !== null && hasUnsavedChanges();
  return (
    <>
      {isLocked && <SignIn ended={now.isEnded ? who : null} previousActor={keepsChanges ? who : null} />}
      {(!isLocked || keepsChanges) && (
        <div class="content" hidden={isLocked}>
          {page === null ? <NoPage /> : <page.Shown key={`${who} ${path.value.join('/')}`} />}
        </div>
      )}
    </>
  );
}

/** A page whose modules load when it is first opened. */
function later(place: string, load: () => Promise<ComponentType>): Page {
  const page = chunk(load);
  return {
    place,
    Shown() {
      const { state, reload } = useChunk(page);
      const { value: loaded } = state;
      if (loaded.status === 'loading') return <LoadingPage place={place} />;
      if (loaded.status === 'ready') return <loaded.value />;
      return (
        <main id="page">
          <h1>{place}</h1>
          <Failure error={loaded.error} onRetry={reload} />
        </main>
      );
    },
  };
}

/** @param place the name of the page, shown while the service is away and the page cannot load */
function LoadingPage({ place = 'Loading' }: { readonly place?: string }) {
  return (
    <main id="page">
      <h1 class={isServiceDown.value ? undefined : 'unseen'}>{place}</h1>
      <Loading what="the page" />
    </main>
  );
}

function NoPage() {
  usePageTitle('Page not found');
  return (
    <main id="page">
      <h1>Page not found</h1>
      <p>
        <a href={pageUrl([])}>Show the runs</a>
      </p>
    </main>
  );
}

function Who() {
  if (session.value.status !== 'in') return null;
  if (session.value.isOpen) {
    return (
      <span class="who" title="Anyone on this machine has access">
        <span>
          No keys<span class="beyond">: anyone on this machine has access</span>
        </span>
      </span>
    );
  }
  return (
    <span class="who">
      {actor.value}
      <Button tone="plain" slim onClick={() => void leave().catch(toastError)}>
        Sign out
      </Button>
    </span>
  );
}

/** Sends the user's decisions with their key, then signs out. */
async function leave(): Promise<void> {
  await decisions.sendAll();
  await signOut();
}

interface SignInProps {
  /** The user whose session the service has ended, or null. */
  readonly ended: string | null;
  /** The user whose unsaved changes this tab keeps, or null if there are none. */
  readonly previousActor: string | null;
}

function SignIn({ ended, previousActor }: SignInProps) {
  const key = useSignal('');
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  usePageTitle('Sign in');
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    isBusy.value = true;
    try {
      await signIn(key.value.trim());
    } catch (error) {
      fault.value = errorText(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <main id="page" class="sign-in">
      <h1>Sign in</h1>
      {ended !== null && (
        <p class="notice wait">
          The session of {ended} has ended: its time is over, or the key of {ended} has expired or was revoked.
        </p>
      )}
      {previousActor !== null && (
        <p class="notice wait">
          This tab keeps the unsaved changes of {previousActor} until {previousActor} signs in again.
        </p>
      )}
      <form class="card" onSubmit={(event) => void submit(event)}>
        <p>
          Enter an API key. An administrator creates keys with <code>council keys add</code>. This page does not store
          the key.
        </p>
        <TextBox
          label="Key"
          fault={fault.value}
          type="password"
          autocomplete="current-password"
          look="mono"
          element={(found) => found?.focus()}
          value={key.value}
          onType={(text) => (key.value = text)}
        />
        <div class="row">
          <Button type="submit" tone="primary" disabled={isBusy.value || key.value.trim() === ''}>
            Sign in
          </Button>
        </div>
      </form>
    </main>
  );
}

/** The icon of the page. */
function Logo() {
  return <img alt="" src={document.querySelector<HTMLLinkElement>('[rel="icon"]')?.href} />;
}

/** The page at a path, or null if there is none. */
function pageAt(parts: readonly string[]): Page | null {
  const [first = '', ...rest] = parts;
  return PAGES[[first, ...rest.map(() => '*')].join('/')] ?? null;
}

const isOffline = signal(false);

/** On every page. A service reads its providers at its start, so the console asks once per visit. */
export function OfflineMark() {
  const mayRead = may('read');
  useEffect(() => {
    if (!mayRead) return undefined;
    const abort = new AbortController();
    council.providers({ signal: abort.signal }).then(
      ([first]) => (isOffline.value = first?.name === 'offline'),
      () => undefined,
    );
    return () => abort.abort();
  }, [mayRead]);
  if (!mayRead || !isOffline.value) return null;
  return <p class="offline-mark">Offline model: no language model is asked</p>;
}
