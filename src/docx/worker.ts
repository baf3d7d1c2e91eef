/** The thread that makes one .docx file, and then ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { Packer } from 'docx';
import { draftTree } from '../console/record/draft-tree.js';
import { tokensOf } from '../console/record/markdown.js';
import type { DocxTask } from './docx.js';
import { documentOf } from './document.js';

const { markdown, ...options } = workerData as DocxTask;
const bytes = await Packer.toBuffer(documentOf(draftTree(tokensOf(markdown)), options));
parentPort?.postMessage(new Uint8Array(bytes));
