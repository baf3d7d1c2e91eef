/** The frame of every page: who is looking, where to go, and the page itself. */
import type { ComponentType } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Button, TextBox } from '../ui/controls.js';
import { Away, Empty, Failure, Loading, tellError } from '../ui/states.js';
import { waiting } from './council.js';
import { isGuarded, pageUrl, path } from './router.js';
import { actor, session, signIn, signOut } from './session.js';
import { Toasts, toastError } from './toasts.js';

/** A page of the console. It has one `main` and in it one `h1`. */
interface Page {
  /** Where it stands in the navigation; null: reached from other pages. */
  readonly place: string | null;
  load(): Promise<ComponentType>;
}

const RUNS: Page = { place: 'Runs', load: async () => (await import('../pages/runs/page.js')).RunsPage };

/** By the shape of the path: `*` stands for an id. */
const PAGES: Readonly<Record<string, Page>> = {
  '': RUNS,
  // What is left of a run's address without its id.
  runs: RUNS,
  'runs/*': { place: 'Runs', load: async () => (await import('../pages/run/page.js')).RunPage },
  compare: { place: 'Runs', load: async () => (await import('../pages/compare/page.js')).ComparePage },
  inbox: { place: 'Inbox', load: async () => (await import('../pages/inbox/page.js')).InboxPage },
  blueprints: { place: 'Blueprints', load: async () => (await import('../pages/blueprints/page.js')).BlueprintsPage },
  'blueprints/*': { place: 'Blueprints', load: async () => (await import('../pages/blueprint/page.js')).BlueprintPage },
  documents: { place: 'Documents', load: async () => (await import('../pages/documents/page.js')).DocumentsPage },
  'documents/*': { place: 'Documents', load: async () => (await import('../pages/documents/page.js')).DocumentsPage },
};

const NAVIGATION = [
  { place: 'Runs', parts: [] },
  { place: 'Inbox', parts: ['inbox'] },
  { place: 'Blueprints', parts: ['blueprints'] },
  { place: 'Documents', parts: ['documents'] },
] as const;

export function App() {
  const page = pageAt(path.value);
  // In its title, so that the link keeps its name.
  const count = session.value.status === 'in' ? (waiting.count.value ?? 0) : 0;
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <header>
        <div class="bar">
          <a class="brand" href={pageUrl([])}>
            <Logo />
            Council
          </a>
          <nav aria-label="Pages">
            {NAVIGATION.map(({ place, parts }) => (
              <a
                key={place}
                href={pageUrl(parts)}
                aria-current={page?.place === place ? 'page' : undefined}
                title={place === 'Inbox' && count > 0 ? `${count} wait for you` : undefined}
              >
                {place}
                {place === 'Inbox' && count > 0 && (
                  <span class="count" aria-hidden="true">
                    {count}
                  </span>
                )}
              </a>
            ))}
          </nav>
          <Who />
        </div>
      </header>
      <Content page={page} />
      <Away />
      <Toasts />
    </div>
  );
}

function Content({ page }: { readonly page: Page | null }) {
  const { value: now } = session;
  if (now.status === 'asking') return <Waiting />;
  const isLocked = now.status === 'locked';
  const who = isLocked ? now.left : now.session.actor;
  // Edits that are not saved outlast a session that has ended: whoever comes back goes on with them.
  const isKept = isLocked && who !== null && isGuarded();
  return (
    <>
      {isLocked && <SignIn kept={isKept ? who : null} />}
      {(!isLocked || isKept) && (
        <div class="content" hidden={isLocked}>
          {page === null ? <NoPage /> : <Lazy key={`${who} ${path.value.join('/')}`} page={page} />}
        </div>
      )}
    </>
  );
}

/** A page, once its modules are there. */
function Lazy({ page }: { readonly page: Page }) {
  const found = useSignal<{ readonly Shown: ComponentType } | null>(null);
  const fault = useSignal<unknown>(null);
  useEffect(() => {
    page.load().then(
      (Shown) => {
        window.sessionStorage.removeItem(LOADED_ANEW);
        found.value = { Shown };
      },
      (error: unknown) => (fault.value = error),
    );
  }, [page]);
  if (fault.value !== null) return <NotLoaded error={fault.value} />;
  if (found.value === null) return <Waiting />;
  const { Shown } = found.value;
  return <Shown />;
}

/** Between two looks at whether the service is back, in milliseconds. */
const LOOK_MS = 1_000;
/** Set while a page has been loaded anew because a module of it was missing, and is not there yet. */
const LOADED_ANEW = 'council.loaded-anew';

function NotLoaded({ error }: { readonly error: unknown }) {
  useEffect(reloadOnReturn, []);
  return (
    <main id="page">
      <h1>This page could not be loaded</h1>
      <p>The service is away, or was updated since this tab was opened. The page comes by itself once it answers.</p>
      <Failure error={error} onRetry={() => window.location.reload()} />
    </main>
  );
}

/** Loads anew once the service answers: twice in a row only if it was away, as a module may be missing for good. */
function reloadOnReturn(): () => void {
  let mayReload = window.sessionStorage.getItem(LOADED_ANEW) === null;
  const timer = window.setInterval(() => {
    fetch('/api/health').then(
      ({ ok }) => {
        if (!ok) return;
        window.clearInterval(timer);
        if (!mayReload) return;
        window.sessionStorage.setItem(LOADED_ANEW, 'yes');
        window.location.reload();
      },
      () => (mayReload = true),
    );
  }, LOOK_MS);
  return () => window.clearInterval(timer);
}

function Waiting() {
  return (
    <main id="page">
      <h1 class="unseen">Loading</h1>
      <Loading what="the page" />
    </main>
  );
}

function NoPage() {
  return (
    <main id="page">
      <h1>There is no such page</h1>
      <Empty title="Nothing lives at this address">
        <a href={pageUrl([])}>To the runs</a>
      </Empty>
    </main>
  );
}

function Who() {
  if (session.value.status !== 'in') return null;
  if (session.value.isOpen) return <span class="who">No keys: open on this machine</span>;
  return (
    <span class="who">
      {actor.value}
      <Button tone="plain" slim onClick={() => void signOut().catch(toastError)}>
        Sign out
      </Button>
    </span>
  );
}

const MADE_BY = (
  <>
    Made by <code>council keys add</code>
  </>
);

/** @param kept whose edits wait for them; null: nobody's */
function SignIn({ kept }: { readonly kept: string | null }) {
  const key = useSignal('');
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    isBusy.value = true;
    try {
      await signIn(key.value.trim());
    } catch (error) {
      fault.value = tellError(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <main id="page">
      <h1>Sign in</h1>
      {kept !== null && (
        <p class="notice wait">
          What {kept} has not saved is kept in this tab, until {kept} is back.
        </p>
      )}
      <form class="card narrow" onSubmit={(event) => void submit(event)}>
        <p>This service wants a key. It is changed for a session of 12 hours and not kept by this page.</p>
        <TextBox
          label="Key"
          hint={MADE_BY}
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

function Logo() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#4f46e5" />
      <g fill="#fff">
        <circle cx="16" cy="8.5" r="3.5" />
        <circle cx="8" cy="21.5" r="3.5" />
        <circle cx="24" cy="21.5" r="3.5" />
      </g>
      <path d="M16 12v4M11 20l3-3M21 20l-3-3" stroke="#fff" stroke-width="2" fill="none" />
    </svg>
  );
}

/** The page at a path; null: there is none. */
function pageAt(parts: readonly string[]): Page | null {
  const [first = '', ...rest] = parts;
  return PAGES[[first, ...rest.map(() => '*')].join('/')] ?? null;
}
