/** The models that the fields of the editor and of the start dialog suggest: the default model of each configured provider. */
import { council } from '../../shell/council.js';
import { useResource } from '../../ui/resource.js';

/** The id of the list, for the fields. */
export const MODEL_NAMES = 'model-names';

/** The list of suggestions; empty until it is loaded, or if it cannot be. @param id of the list */
export function ModelNames({ id = MODEL_NAMES }: { readonly id?: string }) {
  const { state } = useResource('providers', (signal) => council.providers({ signal }));
  const { value: found } = state;
  const providers = found.status === 'ready' ? found.value : [];
  return (
    <datalist id={id}>
      {providers.map(({ name, default_model: model, default: isDefault }) => (
        <option key={name} value={`${name}/${model}`}>
          {isDefault ? 'Default of the service' : `Default of ${name}`}
        </option>
      ))}
    </datalist>
  );
}
