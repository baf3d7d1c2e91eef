/** Copies the built client and its types into this folder, because a package holds only files below its own folder. */
import { cpSync, rmSync } from 'node:fs';

const built = new URL('../../dist/src/', import.meta.url);
const packed = new URL('dist/', import.meta.url);

rmSync(packed, { recursive: true, force: true });
cpSync(new URL('client/', built), new URL('client/', packed), {
  recursive: true,
  filter: (path) => !path.endsWith('.map'),
});
cpSync(new URL('generated/schemas.d.ts', built), new URL('generated/schemas.d.ts', packed));
