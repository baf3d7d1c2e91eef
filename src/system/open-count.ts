/** Counts what is open at the moment. */
export class OpenCount {
  #now = 0;

  get now(): number {
    return this.#now;
  }

  /** Counts one more. @returns a function that ends it; further calls have no effect */
  open(): () => void {
    let isOpen = true;
    this.#now += 1;
    return () => {
      if (isOpen) this.#now -= 1;
      isOpen = false;
    };
  }
}
