/** The thread that makes one .docx file, and then ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { Packer } from 'docx';
import { withSigns } from '../draft/quotations.js';
import { draftTree } from '../draft/draft-tree.js';
import { tokensOf } from '../draft/markdown.js';
import type { DocxTask } from './docx.js';
import { documentOf } from './document.js';

const { markdown, ...options } = workerData as DocxTask;
const bytes = await Packer.toBuffer(documentOf(draftTree(tokensOf(withSigns(markdown, options.sources))), options));
parentPort?.postMessage(new Uint8Array(bytes));
