/** Text of models and blueprints on a terminal: without the characters that would command it. */

/** The text with every control character but line feed and tab replaced by U+FFFD. */
export function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}/gu, '\uFFFD');
}
