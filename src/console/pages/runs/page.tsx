/** The list of runs. */
export function RunsPage() {
  return (
    <main id="page">
      <h1>Runs</h1>
    </main>
  );
}
