/** The settings of a service without proxies. Apart from the transport, so that only tests that send requests load it. */
import type { ProxySettings } from '../../src/config-values.js';

export const NO_PROXIES: ProxySettings = { http: null, https: null, none: '' };
