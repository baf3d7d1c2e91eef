/** One run: its graph, its drafts, and every moment of it. */
export function RunPage() {
  return (
    <main id="page">
      <h1>Run</h1>
    </main>
  );
}
