/**
 * A server that speaks OpenAI's chat completions and answers after a second. Sends its port to the parent process, and the
 * number of its answers when it is asked.
 */
import { createServer } from 'node:http';

const DELAY_MS = 1_000;

let answers = 0;
const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    const isCritique = body.includes('\\"score\\" is a number');
    setTimeout(() => {
      answers += 1;
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(isCritique ? CRITIQUE : DRAFT);
    }, DELAY_MS);
  });
});
// The clients' connections end when the service stops, not before.
server.keepAliveTimeout = 60_000;

const CRITIQUE = answerOf(JSON.stringify({ score: 9, feedback: 'It says what the sea is, and for whom.' }));
const DRAFT = answerOf('The sea is wide, cold and full of life. '.repeat(20));

function answerOf(content: string): string {
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'slow',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 120, completion_tokens: 180, total_tokens: 300 },
  });
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.(typeof address === 'object' && address !== null ? address.port : 0);
});
process.on('message', () => process.send?.(answers));
process.on('disconnect', () => process.exit());
