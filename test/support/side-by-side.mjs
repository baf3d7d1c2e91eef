/**
 * Runs commands side by side, to keep every core busy. What one says comes when it has ended, of the last one as it
 * comes; exits with 1 when any has failed.
 */
import { spawn } from 'node:child_process';

const commands = process.argv.slice(2);

function ended(command, index) {
  const isLast = index === commands.length - 1;
  const child = spawn(command, {
    shell: true,
    stdio: ['ignore', ...(isLast ? ['inherit', 'inherit'] : ['pipe', 'pipe'])],
  });
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => said.push(bytes));
  return new Promise((resolve) => {
    child.on('close', (code) => resolve({ command, code, said: Buffer.concat(said) }));
  });
}

const all = await Promise.all(commands.map(ended));
for (const { command, code, said } of all) {
  process.stdout.write(said);
  if (code !== 0) process.stdout.write(`${command}: failed\n`);
}
process.exitCode = all.every(({ code }) => code === 0) ? 0 : 1;
