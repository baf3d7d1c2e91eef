/**
 * The calls BatchAppend and Read of the server's service `Streams` (streams.proto of EventStoreDB 23.10). Reads and
 * writes only the fields that this adapter needs, with google-protobuf's reader and writer. The message classes of the
 * vendor's package take 8.6 µs to read an event, this 3.3 µs.
 */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import { Client } from '@grpc/grpc-js';
import type { CallOptions, ClientDuplexStream, ClientReadableStream, Metadata } from '@grpc/grpc-js';
import type { BinaryReader } from 'google-protobuf';
import protobuf from 'google-protobuf';
import { elementAt } from '../../system/element.js';
import type { ExpectedRevision, NewEvent, Position } from '../port.js';
import type { ServerEvent } from './names.js';
import { SERVER_BEGIN, positionOf } from './names.js';

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

// Requests. Each number is that of a field.

/** The request has no deadline: the server compares it with its own clock, and gives up a write after 2 s by itself. */
function appendBytes({ id, append: { expected, events, metadata }, serverStream }: SentAppend): Buffer {
  const writer = new protobuf.BinaryWriter();
  writer.writeMessage(1, id, (_, uuid) => {
    uuid.writeMessage(1, id, (__, structured) => structured.writeInt64(2, id));
  });
  writer.writeMessage(2, expected, (_, options) => {
    options.writeMessage(1, serverStream, (__, stream) => stream.writeBytes(3, Buffer.from(serverStream)));
    if (typeof expected === 'number') options.writeUint64(2, expected);
    else options.writeMessage(expected === 'none' ? 3 : 4, expected, () => undefined);
  });
  for (const [index, event] of events.entries()) {
    writer.writeMessage(3, event, (_, message) => writeEvent(message, event, elementAt(metadata, index)));
  }
  writer.writeBool(4, true);
  return Buffer.from(writer.getResultBuffer());
}

function writeEvent(message: protobuf.BinaryWriter, { id, type, data }: NewEvent, metadata: string): void {
  message.writeMessage(1, id, (_, uuid) => uuid.writeString(2, id));
  writeProperty(message, 'type', type);
  writeProperty(message, 'content-type', 'application/json');
  // As bytes, because the writer encodes long texts slowly.
  message.writeBytes(3, Buffer.from(metadata));
  message.writeBytes(4, Buffer.from(data));
}

function writeProperty(message: protobuf.BinaryWriter, name: string, value: string): void {
  message.writeMessage(2, name, (_, entry) => {
    entry.writeString(1, name);
    entry.writeString(2, value);
  });
}

// Answers. Their readers compare the field's number: V8 is slow to create an object of readers with numbers as names.

function appendAnswerIn(bytes: Buffer): AppendAnswer {
  const answer: { id: number; revision: number; position: Position | null; status: statusPb.Status | null } = {
    id: NaN,
    revision: 0,
    position: null,
    status: null,
  };
  const reader = new protobuf.BinaryReader(bytes);
  eachField(reader, (field) => {
    if (field === 1) withinField(reader, 1, () => withinField(reader, 2, () => (answer.id = reader.readInt64())));
    else if (field === 2) answer.status = statusPb.Status.deserializeBinary(reader.readBytes());
    else if (field === 3)
      within(reader, (written) => {
        if (written === 1) answer.revision = reader.readUint64();
        else if (written === 3) answer.position = readPosition(reader);
        else reader.skipField();
      });
    else reader.skipField();
  });
  const { id, revision, position, status } = answer;
  if (status !== null) return { id, kind: 'refused', status };
  return position === null ? { id, kind: 'unknown' } : { id, kind: 'written', revision, position };
}

/** @throws {Error} the bytes are no message */
export function readAnswerIn(bytes: Buffer): ReadAnswer {
  let answer: ReadAnswer = { kind: 'other' };
  const reader = new protobuf.BinaryReader(bytes);
  eachField(reader, (field) => {
    if (field === 1) withinField(reader, 1, () => (answer = { kind: 'event', event: readEvent(reader) }));
    else if (field === 3) answer = { kind: 'checkpoint', position: readPosition(reader) };
    else {
      reader.skipField();
      if (field === 8) answer = { kind: 'caughtUp' };
    }
  });
  return answer;
}

function readEvent(reader: BinaryReader): ServerEvent {
  const event = { ...DEFAULTS };
  const position = { commit: 0, prepare: 0 };
  within(reader, (field) => {
    switch (field) {
      case 1:
        return withinField(reader, 2, () => (event.id = reader.readString()));
      case 2:
        return withinField(reader, 3, () => (event.serverStream = readText(reader)));
      case 3:
        event.revision = reader.readUint64();
        return;
      case 4:
        position.prepare = reader.readUint64();
        return;
      case 5:
        position.commit = reader.readUint64();
        return;
      case 6: {
        const { name, value } = readProperty(reader);
        if (name === 'type') event.type = value;
        else if (name === 'created') event.recordedAtMs = Number(value) / TICKS_PER_MS;
        return;
      }
      case 7:
        event.metadata = readText(reader);
        return;
      case 8:
        event.data = readText(reader);
        return;
      default:
        reader.skipField();
    }
  });
  event.position = positionOf(position);
  return event;
}

/** The values of fields that the server leaves out. */
const DEFAULTS = {
  serverStream: '',
  id: '',
  type: '',
  data: '',
  metadata: '',
  revision: 0,
  recordedAtMs: NaN,
  position: SERVER_BEGIN,
};

/** The server counts time in units of 100 ns. */
const TICKS_PER_MS = 10_000;

function readProperty(reader: BinaryReader): { readonly name: string; readonly value: string } {
  const property = { name: '', value: '' };
  within(reader, (field) => {
    if (field === 1) property.name = reader.readString();
    else if (field === 2) property.value = reader.readString();
    else reader.skipField();
  });
  return property;
}

function readPosition(reader: BinaryReader): Position {
  const position = { commit: 0, prepare: 0 };
  within(reader, (field) => {
    if (field === 1) position.commit = reader.readUint64();
    else if (field === 2) position.prepare = reader.readUint64();
    else reader.skipField();
  });
  return positionOf(position);
}

function readText(reader: BinaryReader): string {
  const { buffer, byteOffset, byteLength } = reader.readBytes();
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}

/** Reads one field of a message inside another message, and skips the others. */
function withinField(reader: BinaryReader, wanted: number, read: () => void): void {
  within(reader, (field) => (field === wanted ? read() : reader.skipField()));
}

/** Reads the fields of a message inside another message. */
function within(reader: BinaryReader, read: (field: number) => void): void {
  reader.readMessage(read, () => eachField(reader, read));
}

function eachField(reader: BinaryReader, read: (field: number) => void): void {
  while (reader.nextField() && !reader.isEndGroup()) read(reader.getFieldNumber());
}
