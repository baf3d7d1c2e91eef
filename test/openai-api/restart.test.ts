import { expect } from 'chai';
import type { ResponseObject, RunFacts } from '../../src/generated/schemas.js';
import { openEventStream } from '../support/event-stream-client.js';
import { councilOf, isCritique, says } from '../support/fake-openai.js';
import { restClient } from '../support/rest-client.js';
import { restartedService } from '../support/restarted-service.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { soakIt } from '../support/soak.js';

/** A final draft of three pieces. */
const FINAL = 'x'.repeat(600);

onEmbeddedLog(() =>
  describe('A response whose service is killed', () => {
    const restarted = restartedService();

    const readResponse = async (url: string, id: string): Promise<ResponseObject> => {
      const rest = restClient(url);
      return rest.read(await rest.get(`/v1/responses/${id}`), 200, 'response-object.json');
    };
    const numbersOf = (events: readonly { readonly data: string }[]): readonly number[] =>
      events.map(({ data }) => (JSON.parse(data) as { sequence_number: number }).sequence_number);

    /** Calls with these numbers hang. The others are answered: agents write the final draft. */
    function hangAt(...hanging: readonly number[]): void {
      const council = councilOf([9]);
      restarted.server.answerBy((call, index) => {
        if (hanging.includes(index)) return () => undefined;
        return isCritique(call.body) ? council(call, index) : says(FINAL);
      });
    }

    it('completes with the same id, resumed after a sequence number, with one call repeated', async () => {
      hangAt(2);
      const { server } = restarted;
      const before = await restarted.start();
      const rest = restClient(before.url);
      const created = await rest.post('/v1/responses', { model: 'council', input: 'Oaks', background: true });
      const { id, status } = rest.read(created, 200, 'response-object.json');
      expect(status).to.equal('queued');
      const stream = openEventStream(before.url, `/v1/responses/${id}?stream=true`);
      await stream.until(({ event }) => event === 'response.in_progress');
      await server.until(() => server.calls.length === 3);
      expect((await readResponse(before.url, id)).status).to.equal('in_progress');
      await restarted.kill(before);
      expect(await stream.over).to.equal('cut');
      expect(numbersOf(stream.events)).to.deep.equal([0, 1]);

      const { url } = await restarted.start();
      const resumed = openEventStream(url, `/v1/responses/${id}?stream=true&starting_after=1`);
      await resumed.until(({ event }) => event === 'response.completed');
      expect(await resumed.over).to.equal('ended');
      expect(numbersOf(resumed.events)).to.deep.equal([2, 3, 4, 5, 6, 7, 8, 9, 10]);
      const response = await readResponse(url, id);
      expect(response).to.include({ id, status: 'completed' });
      expect(response.output[0]?.content[0]?.text).to.equal(FINAL);
      // One call was lost, so its tokens are unknown.
      expect(response).not.to.have.property('usage');
      // The call that the kill cut off, and no other.
      expect(server.calls).to.have.lengthOf(4);
      expect(server.calls[3]?.body).to.deep.equal(server.calls[2]?.body);
      const again = restClient(url);
      const page = await again.get(`/api/runs/${response.metadata.run_id}/events`);
      const attempts = again
        .read(page, 200, 'run-events-page.json')
        .events.filter(({ type }) => type === 'NodeStarted')
        .map(({ data }) => data as RunFacts['NodeStarted']);
      expect(attempts.map(({ attempt }) => attempt)).to.deep.equal([1, 1, 1, 2]);

      // The record determines the numbers: every later stream has the same events.
      const whole = openEventStream(url, `/v1/responses/${id}?stream=true`);
      expect(await whole.over).to.equal('ended');
      expect(numbersOf(whole.events)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      expect(whole.events.slice(0, 2)).to.deep.equal(stream.events);
      expect(whole.events.slice(2)).to.deep.equal(resumed.events);
    });

    soakIt('goes on after the crash, also if its request was in the foreground', async () => {
      hangAt(2);
      const { server } = restarted;
      const before = await restarted.start();
      const body = JSON.stringify({ model: 'council', input: 'Oaks' });
      const sent = { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'oaks' }, body };
      const cut = fetch(`${before.url}/v1/responses`, sent).then(
        () => 'answered',
        () => 'cut',
      );
      await server.until(() => server.calls.length === 3);
      await restarted.kill(before);
      expect(await cut).to.equal('cut');
      const { url } = await restarted.start();
      const reply = await fetch(`${url}/v1/responses`, sent);
      expect(await reply.json()).to.include({ status: 'completed' });
      expect(server.calls).to.have.lengthOf(4);
    });

    soakIt('breaks off at a stop of the service, and goes on after the next start', async () => {
      hangAt(2, 3);
      const { server } = restarted;
      const before = await restarted.start();
      const rest = restClient(before.url);
      const created = await rest.post('/v1/responses', { model: 'council', input: 'Oaks', background: true });
      const { id } = rest.read(created, 200, 'response-object.json');
      const stream = openEventStream(before.url, `/v1/responses/${id}?stream=true`);
      const body = JSON.stringify({ model: 'council', messages: [{ role: 'user', content: 'Elms' }] });
      const sent = { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'elms' }, body };
      await server.until(() => server.calls.length === 3);
      const waiting = fetch(`${before.url}/v1/chat/completions`, sent).then(
        ({ status }) => status,
        () => 'cut',
      );
      await server.until(() => server.calls.length === 4);
      await before.stop();
      expect(await stream.over).to.equal('cut');
      expect(await waiting).to.be.oneOf([503, 'cut']);
      const { url } = await restarted.start();
      const resumed = openEventStream(url, `/v1/responses/${id}?stream=true`);
      await resumed.until(({ event }) => event === 'response.completed');
      const chat = await fetch(`${url}/v1/chat/completions`, sent);
      expect(chat.status).to.equal(200);
    });
  }),
);
