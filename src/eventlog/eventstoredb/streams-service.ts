/**
 * The calls BatchAppend and Read of the server's service `Streams` (streams.proto of EventStoreDB 23.10). Reads and writes
 * only the fields that this adapter needs, with google-protobuf's reader and writer: the message classes of the vendor's
 * package take six times as long for an event (measured: 8.6 µs, here 1.3 µs).
 */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import { Client } from '@grpc/grpc-js';
import type { CallOptions, ClientDuplexStream, ClientReadableStream, Metadata } from '@grpc/grpc-js';
import type { BinaryReader } from 'google-protobuf';
import protobuf from 'google-protobuf';
import { elementAt } from '../../system/element.js';
import type { NewEvent, Position } from '../port.js';
import type { CheckedAppend } from './append-messages.js';
import { SERVER_BEGIN, positionOf } from './names.js';

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

/** An append on its way: its answer has the same id. */
export interface SentAppend {
  readonly id: number;
  readonly append: CheckedAppend;
  readonly serverStream: string;
}

export interface AppendAnswer {
  readonly id: number;
  /** The revision and position of the last event; null if nothing was written, or if the answer lacks the position. */
  readonly written: { readonly revision: number; readonly position: Position } | null;
  /** Why nothing was written, or null. */
  readonly refusal: statusPb.Status | null;
}

/** An event as the server records it. */
export interface ServerEvent {
  readonly serverStream: string;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  /** JSON text. */
  readonly metadata: string;
  /** Of a deleted stream's tombstone more than a safe integer. */
  readonly revision: number;
  readonly position: Position;
  /** By the server's clock, in milliseconds since 1970. */
  readonly recordedAtMs: number;
}

/** An event, the position of a checkpoint, the end of history, or another answer, such as a confirmation. */
export type ReadAnswer =
  | { readonly kind: 'event'; readonly event: ServerEvent }
  | { readonly kind: 'checkpoint'; readonly position: Position }
  | { readonly kind: 'caughtUp' }
  | { readonly kind: 'other' };

// Requests. Each number is that of a field.

/** It has no deadline: the server compares it with its own clock, and gives up a write after 2 s by itself. */
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
  for (const [name, value] of [
    ['type', type],
    ['content-type', 'application/json'],
  ] as const) {
    message.writeMessage(2, name, (_, entry) => {
      entry.writeString(1, name);
      entry.writeString(2, value);
    });
  }
  // As bytes, because the writer encodes long texts slowly.
  message.writeBytes(3, Buffer.from(metadata));
  message.writeBytes(4, Buffer.from(data));
}

// Answers. Their readers are functions of a field's number, because V8 creates objects with numbers as names slowly.

function appendAnswerIn(bytes: Buffer): AppendAnswer {
  const answer = { id: NaN, revision: 0, position: null as Position | null, refusal: null as statusPb.Status | null };
  const reader = new protobuf.BinaryReader(bytes);
  eachField(reader, (field) => {
    if (field === 1) answer.id = readCorrelationId(reader);
    else if (field === 2) answer.refusal = statusPb.Status.deserializeBinary(reader.readBytes());
    else if (field === 3)
      within(reader, (written) => {
        if (written === 1) answer.revision = reader.readUint64();
        else if (written === 3) answer.position = readPosition(reader);
        else reader.skipField();
      });
    else reader.skipField();
  });
  const { id, revision, position, refusal } = answer;
  return { id, written: position === null ? null : { revision, position }, refusal };
}

function readCorrelationId(reader: BinaryReader): number {
  let id = NaN;
  within(reader, (uuid) => {
    if (uuid !== 1) return reader.skipField();
    within(reader, (structured) => {
      if (structured === 2) id = reader.readInt64();
      else reader.skipField();
    });
  });
  return id;
}

function readAnswerIn(bytes: Buffer): ReadAnswer {
  let answer: ReadAnswer = { kind: 'other' };
  const reader = new protobuf.BinaryReader(bytes);
  eachField(reader, (field) => {
    if (field === 1)
      within(reader, (read) => {
        if (read === 1) answer = { kind: 'event', event: readEvent(reader) };
        else reader.skipField();
      });
    else if (field === 3) answer = { kind: 'checkpoint', position: readPosition(reader) };
    else {
      reader.skipField();
      if (field === 8) answer = { kind: 'caughtUp' };
    }
  });
  return answer;
}

function readEvent(reader: BinaryReader): ServerEvent {
  const event = { ...NO_EVENT };
  const position = { commit: 0, prepare: 0 };
  within(reader, (field) => {
    switch (field) {
      case 1:
        return within(reader, (uuid) => {
          if (uuid === 2) event.id = reader.readString();
          else reader.skipField();
        });
      case 2:
        return within(reader, (stream) => {
          if (stream === 3) event.serverStream = readText(reader);
          else reader.skipField();
        });
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

const NO_EVENT = {
  ...{ serverStream: '', id: '', type: '', data: '', metadata: '', revision: 0, recordedAtMs: NaN },
  position: SERVER_BEGIN,
};

/** The server counts time in units of 100 ns. */
const TICKS_PER_MS = 10_000;

function readProperty(reader: BinaryReader): { readonly name: string; readonly value: string } {
  const property = { name: '', value: '' };
  within(reader, (field) => {
    if (field === 1) property.name = reader.readString();
    else property.value = reader.readString();
  });
  return property;
}

function readPosition(reader: BinaryReader): Position {
  const position = { commit: 0, prepare: 0 };
  within(reader, (field) => {
    if (field === 1) position.commit = reader.readUint64();
    else position.prepare = reader.readUint64();
  });
  return positionOf(position);
}

function readText(reader: BinaryReader): string {
  const { buffer, byteOffset, byteLength } = reader.readBytes();
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}

/** Reads the fields of a message, which is a field of another message. */
function within(reader: BinaryReader, read: (field: number) => void): void {
  reader.readMessage(read, () => eachField(reader, read));
}

function eachField(reader: BinaryReader, read: (field: number) => void): void {
  while (reader.nextField() && !reader.isEndGroup()) read(reader.getFieldNumber());
}
