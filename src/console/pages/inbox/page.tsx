/** What waits for a human. */
export function InboxPage() {
  return (
    <main id="page">
      <h1>Inbox</h1>
    </main>
  );
}
