/** The error of a rejected promise. @throws {Error} the promise resolved */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`Not rejected, but resolved with ${JSON.stringify(value)}`);
}
