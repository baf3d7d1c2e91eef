/** The compiler, required: to import it, Node reads all of it once more for the names it may export, half a second. */
import { createRequire } from 'node:module';
import type ts from 'typescript';

export default createRequire(import.meta.url)('typescript') as typeof ts;
