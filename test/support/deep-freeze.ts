/** Freezes a value and all it holds, so that whoever changes it throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const each of Object.values(value)) deepFreeze(each);
  return value;
}
