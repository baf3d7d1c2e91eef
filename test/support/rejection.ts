/** What a promise was rejected with. @throws {Error} when it was kept */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  let kept: unknown;
  try {
    kept = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`Not rejected, but kept with ${JSON.stringify(kept)}`);
}
