/** One blueprint: its editor, its versions. */
export function BlueprintPage() {
  return (
    <main id="page">
      <h1>Blueprint</h1>
    </main>
  );
}
