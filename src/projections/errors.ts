/** How the stored views fail. */
import { CouncilError } from '../errors.js';

/** The stored views can be neither opened nor recreated. */
export class ViewsFailed extends CouncilError<{ file: string; reason: string }> {
  readonly code = 'views.failed';
  constructor(data: { file: string; reason: string }, options?: ErrorOptions) {
    super(`Cannot open the stored views "${data.file}": ${data.reason}`, data, options);
  }
}

/** The stored views failed. They are deleted and folded from the log again. */
export class ViewsLost extends CouncilError {
  readonly code = 'views.lost';
  constructor(options?: ErrorOptions) {
    super('The stored views failed and are being rebuilt from the log', {}, options);
  }
}

/** The disk of the views is full. The service shows the newest rows but cannot store them. */
export class ViewsFull extends CouncilError {
  readonly code = 'views.full';
  constructor(options?: ErrorOptions) {
    super('The stored views cannot be written: their disk is full', {}, options);
  }
}

/** The views are too far behind the log for a query. */
export class ViewsBehind extends CouncilError {
  readonly code = 'views.behind';
  constructor() {
    super('The lists are not up to date yet: they are being folded', {});
  }
}
