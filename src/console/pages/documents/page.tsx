/** Documents that agents can search: all of them, what is found in them, and one with its passages. */
import { path } from '../../shell/router.js';
import { DocumentPage } from './document.js';
import { DocumentList } from './list.js';

export function DocumentsPage() {
  const [, id] = path.value;
  return id === undefined ? <DocumentList /> : <DocumentPage id={id} />;
}
