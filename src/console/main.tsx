/** Starts the console. */
import { render } from 'preact';
import { App } from './shell/app.js';
import { focusHeadings, scrollBackTo } from './shell/arrival.js';
import { untilAnswer } from './shell/council.js';
import { followApprovals } from './shell/notifications.js';
import { basePath, startRouter } from './shell/router.js';
import { findSession } from './shell/session.js';
import { followTheme } from './shell/settings.js';
import { startTitle } from './shell/title.js';
import { sendBeforeLeaving } from './shell/undo.js';
import { waitForService } from './ui/chunks.js';
import { setServiceClock, startClock } from './ui/time.js';

const root = document.getElementById('app');
if (root === null) throw new Error('The page has no element with the id "app"');
followTheme();
startRouter(scrollBackTo);
focusHeadings();
startTitle();
startClock();
void fetch(`${basePath}/api/health`).then(
  ({ headers }) => setServiceClock(headers.get('Date')),
  () => undefined,
);
followApprovals();
waitForService(untilAnswer);
sendBeforeLeaving();
render(<App />, root);
void findSession();
