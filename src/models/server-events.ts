/** Reads server-sent events (HTML standard, "Interpreting an event stream"), as far as models' servers use them. */

/** The data of each event, lines joined; comments, names and ids are left out. */
export async function* serverEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of linesOf(chunks)) {
    if (line === '') {
      if (data.length > 0) yield data.join('\n');
      data = [];
    } else if (line.startsWith('data:')) {
      data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
    }
  }
  // Several servers omit the empty line after the last event.
  if (data.length > 0) yield data.join('\n');
}

/** Lines ended by LF or CRLF, and the rest after the last one. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    rest.push(first);
    for (const next of more) {
      yield withoutReturn(rest.join(''));
      rest = [next];
    }
  }
  const last = withoutReturn(rest.join('') + decoder.decode());
  if (last !== '') yield last;
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
