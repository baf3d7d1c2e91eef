/** Structured log lines, as pino writes them. */
export interface Logger {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
