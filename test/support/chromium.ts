/** Finds Chromium: the headless shell first, which takes a third of the processor time. */
import { existsSync } from 'node:fs';

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
const PLACES = NAMES.map((name) => `/usr/bin/${name}`);

/** The browser's program, or null if none is installed. */
export const CHROMIUM = [process.env['CHROMIUM'] ?? '', ...PLACES].find((file) => existsSync(file)) ?? null;

/** Title of the pending test without a browser. */
export const NO_CHROMIUM = `needs Chromium (${PLACES.join(', ')}, or the path in CHROMIUM)`;
