/** The councils that come with the service, to start from. */
import { readdir, readFile } from 'node:fs/promises';
import type { Route } from '../route.js';

/** Relative to dist/src/http/routes, where this file runs. */
const FOLDER = new URL('../../../../schemas/examples/', import.meta.url);

/** GET /api/examples. */
export function exampleRoutes(): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/examples',
      access: 'read',
      name: 'listExamples',
      summary: 'Lists the example councils of the service',
      description: 'Each is a body for `POST /api/councils/`, with a `description` that is not saved.',
      tag: 'blueprints',
      success: { status: 200, description: 'The examples, by id', schema: 'example-list.json' },
      handle: async () => ({ status: 200, body: await readExamples() }),
    },
  ];
}

async function readExamples(): Promise<readonly unknown[]> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.blueprint.json')).toSorted();
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, FOLDER), 'utf8')));
  return texts.map((text): unknown => JSON.parse(text));
}
