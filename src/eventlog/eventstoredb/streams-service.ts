/**
 * The calls BatchAppend and Read of the server's service `Streams` (streams.proto of EventStoreDB 23.10). Reads and
 * writes only the fields that this adapter needs.
 */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import { Client } from '@grpc/grpc-js';
import type { CallOptions, ClientDuplexStream, ClientReadableStream, Metadata } from '@grpc/grpc-js';
import { elementAt } from '../../system/element.js';
import type { ExpectedRevision, NewEvent, Position } from '../port.js';
import { FieldReader } from './field-reader.js';
import { FieldWriter } from './field-writer.js';
import type { ServerEvent } from './names.js';
import { positionOf } from './names.js';

/** The gRPC client of the service. */
export class StreamsClient extends Client {
  batchAppend(metadata: Metadata, options: CallOptions): ClientDuplexStream<SentAppend, AppendAnswer> {
    return this.makeBidiStreamRequest(`${SERVICE}/BatchAppend`, appendBytes, appendAnswerIn, metadata, options);
  }

  read(request: ReadReq, metadata: Metadata, options: CallOptions): ClientReadableStream<ReadAnswer> {
    const bytes = (sent: ReadReq): Buffer => Buffer.from(sent.serializeBinary());
    return this.makeServerStreamRequest(`${SERVICE}/Read`, bytes, readAnswerIn, request, metadata, options);
  }
}

const SERVICE = '/event_store.client.streams.Streams';

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  /** The metadata of each event as JSON text. */
  readonly metadata: readonly string[];
  readonly expected: ExpectedRevision | 'any';
}

/** An append as it is sent. Its answer carries the same id. */
export interface SentAppend {
  readonly id: number;
  readonly append: CheckedAppend;
  readonly serverStream: string;
}

/** The server's answer to an append; `revision` and `position` are those of its last event. */
export type AppendAnswer = { readonly id: number } & (
  | { readonly kind: 'written'; readonly revision: number; readonly position: Position }
  | { readonly kind: 'refused'; readonly status: statusPb.Status }
  | { readonly kind: 'unknown' }
);

/** An event, the position of a checkpoint, the end of history, or another answer, such as a confirmation. */
export type ReadAnswer =
  | { readonly kind: 'event'; readonly event: ServerEvent }
  | { readonly kind: 'checkpoint'; readonly position: Position }
  | { readonly kind: 'caughtUp' }
  | { readonly kind: 'other' };

// Requests. The first number of a call is that of a field. Fields are written last to first.

/** Most bytes of the request and of each event beside their texts. */
const FRAME_BYTES = 128;

/** The request has no deadline: the server compares it with its own clock, and gives up a write after 2 s by itself. */
export function appendBytes({ id, append: { expected, events, metadata }, serverStream }: SentAppend): Buffer {
  let maxBytes = FRAME_BYTES + Buffer.byteLength(serverStream);
  for (const [index, event] of events.entries()) {
    const texts = Buffer.byteLength(event.data) + Buffer.byteLength(elementAt(metadata, index));
    maxBytes += FRAME_BYTES + texts + Buffer.byteLength(event.id) + Buffer.byteLength(event.type);
  }
  const writer = new FieldWriter(maxBytes);
  writer.number(4, 1);
  for (let index = events.length - 1; index >= 0; index -= 1)
    writeEvent(writer, elementAt(events, index), elementAt(metadata, index));
  const options = writer.end;
  if (typeof expected === 'number') writer.number(2, expected);
  else writer.message(expected === 'none' ? 3 : 4, writer.end);
  const stream = writer.end;
  writer.text(3, serverStream);
  writer.message(1, stream);
  writer.message(2, options);
  const uuid = writer.end;
  writer.number(2, id);
  writer.message(1, uuid);
  writer.message(1, uuid);
  return writer.bytes();
}

function writeEvent(writer: FieldWriter, { id, type, data }: NewEvent, metadata: string): void {
  const message = writer.end;
  writer.text(4, data);
  writer.text(3, metadata);
  writeProperty(writer, 'content-type', 'application/json');
  writeProperty(writer, 'type', type);
  const uuid = writer.end;
  writer.text(2, id);
  writer.message(1, uuid);
  writer.message(3, message);
}

function writeProperty(writer: FieldWriter, name: string, value: string): void {
  const entry = writer.end;
  writer.text(2, value);
  writer.text(1, name);
  writer.message(2, entry);
}

// Answers. Each number is that of a field.

/** @throws {Error} the bytes are no message */
export function appendAnswerIn(bytes: Buffer): AppendAnswer {
  const reader = new FieldReader(bytes);
  let [id, revision] = [NaN, 0];
  let position: Position | null = null;
  let status: statusPb.Status | null = null;
  for (let field = reader.next(); field > 0; field = reader.next()) {
    if (field === 1) id = readId(reader);
    else if (field === 2) status = statusPb.Status.deserializeBinary(reader.bytes());
    else if (field === 3) {
      const outer = reader.enter();
      for (let part = reader.next(); part > 0; part = reader.next()) {
        if (part === 1) revision = reader.number();
        else if (part === 3) position = readPosition(reader);
        else reader.skip();
      }
      reader.leave(outer);
    } else reader.skip();
  }
  if (status !== null) return { id, kind: 'refused', status };
  return position === null ? { id, kind: 'unknown' } : { id, kind: 'written', revision, position };
}

/** The id of an append: the lower half of a UUID. */
function readId(reader: FieldReader): number {
  let id = 0;
  const outer = reader.enter();
  for (let field = reader.next(); field > 0; field = reader.next()) {
    if (field !== 1) {
      reader.skip();
      continue;
    }
    const uuid = reader.enter();
    for (let part = reader.next(); part > 0; part = reader.next()) {
      if (part === 2) id = reader.number();
      else reader.skip();
    }
    reader.leave(uuid);
  }
  reader.leave(outer);
  return id;
}

/** @throws {Error} the bytes are no message */
export function readAnswerIn(bytes: Buffer): ReadAnswer {
  let answer: ReadAnswer = { kind: 'other' };
  const reader = new FieldReader(bytes);
  for (let field = reader.next(); field > 0; field = reader.next()) {
    if (field === 1) {
      const outer = reader.enter();
      for (let part = reader.next(); part > 0; part = reader.next()) {
        if (part === 1) answer = { kind: 'event', event: readEvent(reader) };
        else reader.skip();
      }
      reader.leave(outer);
    } else if (field === 3) answer = { kind: 'checkpoint', position: readPosition(reader) };
    else {
      if (field === 8) answer = { kind: 'caughtUp' };
      reader.skip();
    }
  }
  return answer;
}

/** The server leaves out fields with the value 0 or ''. */
function readEvent(reader: FieldReader): ServerEvent {
  let [serverStream, id, type, data, metadata] = ['', '', '', '', ''];
  let [revision, commit, prepare, recordedAtMs] = [0, 0, 0, NaN];
  const outer = reader.enter();
  for (let field = reader.next(); field > 0; field = reader.next()) {
    switch (field) {
      case 1:
        id = readTextIn(reader, 2);
        break;
      case 2:
        serverStream = readTextIn(reader, 3);
        break;
      case 3:
        revision = reader.number();
        break;
      case 4:
        prepare = reader.number();
        break;
      case 5:
        commit = reader.number();
        break;
      case 6: {
        const { name, value } = readProperty(reader);
        if (name === 'type') type = value;
        else if (name === 'created') recordedAtMs = Number(value) / TICKS_PER_MS;
        break;
      }
      case 7:
        metadata = reader.text();
        break;
      case 8:
        data = reader.text();
        break;
      default:
        reader.skip();
    }
  }
  reader.leave(outer);
  const position = positionOf({ commit, prepare });
  return { serverStream, id, type, data, metadata, revision, position, recordedAtMs };
}

/** The server counts time in units of 100 ns. */
const TICKS_PER_MS = 10_000;

function readProperty(reader: FieldReader): { readonly name: string; readonly value: string } {
  let [name, value] = ['', ''];
  const outer = reader.enter();
  for (let field = reader.next(); field > 0; field = reader.next()) {
    if (field === 1) name = reader.text();
    else if (field === 2) value = reader.text();
    else reader.skip();
  }
  reader.leave(outer);
  return { name, value };
}

function readPosition(reader: FieldReader): Position {
  let [commit, prepare] = [0, 0];
  const outer = reader.enter();
  for (let field = reader.next(); field > 0; field = reader.next()) {
    if (field === 1) commit = reader.number();
    else if (field === 2) prepare = reader.number();
    else reader.skip();
  }
  reader.leave(outer);
  return positionOf({ commit, prepare });
}

/** One text in the message of a field. */
function readTextIn(reader: FieldReader, wanted: number): string {
  let text = '';
  const outer = reader.enter();
  for (let field = reader.next(); field > 0; field = reader.next()) {
    if (field === wanted) text = reader.text();
    else reader.skip();
  }
  reader.leave(outer);
  return text;
}
