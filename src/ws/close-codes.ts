/** Why the service closes a socket: RFC 6455 section 7.4.1 and its registry, and one code of our own. */

/** The run has ended, or there is none: nothing more will come. */
export const CLOSE_NORMAL = 1000;
/** The service stops; connect again, here or to another instance. */
export const CLOSE_RESTART = 1012;
/** The run could not be read, or its record was found damaged. */
export const CLOSE_FAULT = 1011;
/** The client does not read fast enough (contract, section 3). */
export const CLOSE_TOO_SLOW = 4408;
