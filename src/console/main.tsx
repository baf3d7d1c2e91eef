/** The console, started on its page. */
import { render } from 'preact';
import { App } from './shell/app.js';
import { startWaiting } from './shell/notices.js';
import { startRouter } from './shell/router.js';
import { findSession } from './shell/session.js';
import { goBy, startClock } from './ui/time.js';

const place = document.getElementById('app');
if (place === null) throw new Error('The page has no place for the console');
startRouter();
startClock();
void fetch('/api/health').then(
  ({ headers }) => goBy(headers.get('Date')),
  () => undefined,
);
startWaiting();
render(<App />, place);
void findSession();
