/** Saved councils. */
export function BlueprintsPage() {
  return (
    <main id="page">
      <h1>Blueprints</h1>
    </main>
  );
}
