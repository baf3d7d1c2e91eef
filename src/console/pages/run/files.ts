/** Files that the browser saves. */

/** Saves a file. @param content text or bytes */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const MAX_NAME_CHARS = 80;

/** A file name for a text: its first words, without characters that a file system refuses. */
export function fileName(text: string, ending: string): string {
  const safe = text.replace(/[\p{C}/\\:*?"<>|]+/gu, ' ').replace(/\s+/gu, ' ');
  const name = [...safe.trim()]
    .slice(0, MAX_NAME_CHARS)
    .join('')
    .replace(/^[.\s]+|[.\s]+$/gu, '');
  return `${name === '' ? 'draft' : name}.${ending}`;
}
