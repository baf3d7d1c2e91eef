/** A program whose thread tries what the parser of a PDF must not do. Prints one line for each attempt: its name and result. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

const FILE = fileURLToPath(import.meta.url);

const ATTEMPTS: Readonly<Record<string, (folder: string) => unknown>> = {
  'reads its own code': () => readFileSync(FILE),
  'reads a file': (folder) => readFileSync(`${folder}/secret.txt`),
  'writes a file': (folder) => writeFileSync(`${folder}/new.txt`, 'x'),
  'starts a program': () => {
    const { error } = spawnSync(process.execPath, ['--version']);
    if (error !== undefined) throw error;
  },
  'makes code of a text': () => Reflect.construct(Function, ['return 1']),
  'loads native code': (folder) => process.dlopen({ exports: {} }, `${folder}/addon.node`),
};

if (isMainThread) new Worker(FILE, { workerData: process.argv[2], env: {} });
else {
  for (const [name, attempt] of Object.entries(ATTEMPTS)) console.log(`${name}: ${outcomeOf(attempt)}`);
}

function outcomeOf(attempt: (folder: string) => unknown): string {
  try {
    attempt(String(workerData));
    return 'yes';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'refused';
  }
}
