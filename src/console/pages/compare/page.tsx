/** Two runs side by side. */
export function ComparePage() {
  return (
    <main id="page">
      <h1>Compare two runs</h1>
    </main>
  );
}
