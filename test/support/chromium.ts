/** Where a Chromium may be; CHROMIUM names another. */
import { existsSync } from 'node:fs';

const PLACES = ['chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`);

/** The browser's program; null: none is installed. */
export const CHROMIUM = [process.env['CHROMIUM'] ?? '', ...PLACES].find((file) => existsSync(file)) ?? null;

/** Told as pending where there is none. */
export const NO_CHROMIUM = `is not tried: no Chromium is installed (${PLACES.join(', ')}, or what CHROMIUM names)`;
