/**
 * Where a Chromium may be; CHROMIUM names another. First the one that has no windows, a package of its own of Debian: the
 * same engine, for a third of the processor time.
 */
import { existsSync } from 'node:fs';

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
const PLACES = NAMES.map((name) => `/usr/bin/${name}`);

/** The browser's program; null: none is installed. */
export const CHROMIUM = [process.env['CHROMIUM'] ?? '', ...PLACES].find((file) => existsSync(file)) ?? null;

/** Told as pending where there is none. */
export const NO_CHROMIUM = `is not tried: no Chromium is installed (${PLACES.join(', ')}, or what CHROMIUM names)`;
