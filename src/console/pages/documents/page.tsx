/** Documents that agents can search. */
export function DocumentsPage() {
  return (
    <main id="page">
      <h1>Documents</h1>
    </main>
  );
}
