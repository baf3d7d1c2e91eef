/**
 * The server's messages as this adapter uses them: each field by its number in the protocol's streams.proto,
 * gossip.proto and shared.proto. Fields not listed are skipped. Names of streams, data and metadata are bytes there and
 * text here. The client's generated code does the same in two to five times the processor time.
 */
import type {
  CallOptions,
  Client,
  ClientDuplexStream,
  ClientReadableStream,
  ClientUnaryCall,
  Metadata,
  requestCallback,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs/light.js';

/** A 64-bit number in two halves, either of which may come signed. */
export interface Wide {
  readonly low: number;
  readonly high: number;
}

/** A message without fields: only its presence counts. */
type Empty = Readonly<Record<string, never>>;

export interface WireUuid {
  readonly structured?: { readonly most: Wide; readonly least: Wide } | null;
  readonly string?: string;
}

export interface WirePosition {
  readonly commit: Wide;
  readonly prepare: Wide;
}

interface StreamIdentifier {
  readonly name: string;
}

export interface AppendRequest {
  readonly correlationId: WireUuid;
  readonly options: { readonly stream: StreamIdentifier } & (
    | { readonly position: number }
    | { readonly noStream: Empty }
    | { readonly any: Empty }
  );
  readonly proposed: readonly {
    readonly id: WireUuid;
    readonly metadata: Readonly<Record<string, string>>;
    readonly customMetadata: string;
    readonly data: string;
  }[];
  readonly isFinal: true;
}

export interface AppendAnswer {
  readonly correlationId: WireUuid | null;
  readonly error: {
    readonly message: string;
    readonly details: { readonly typeUrl: string; readonly value: Uint8Array } | null;
  } | null;
  readonly success: { readonly revision: Wide; readonly position: WirePosition | null } | null;
}

export interface ReadRequest {
  readonly options: {
    readonly stream?: { readonly stream: StreamIdentifier } & (
      | { readonly revision: number }
      | { readonly start: Empty }
      | { readonly end: Empty }
    );
    readonly all?: { readonly position: WirePosition } | { readonly start: Empty } | { readonly end: Empty };
    readonly direction: 0 | 1;
    readonly resolveLinks: false;
    readonly count?: number;
    readonly subscription?: Empty;
    readonly filter?: {
      readonly max: number;
      readonly checkpointMultiplier: number;
    } & ({ readonly stream: Expression } | { readonly eventType: Expression });
    readonly noFilter?: Empty;
    readonly uuids: { readonly string: Empty };
  };
}

type Expression = { readonly regex: string } | { readonly prefix: readonly string[] };

export interface WireEvent {
  readonly id: WireUuid | null;
  readonly stream: StreamIdentifier | null;
  readonly revision: Wide;
  readonly prepare: Wide;
  readonly commit: Wide;
  readonly metadata: Readonly<Record<string, string>>;
  readonly customMetadata: string;
  readonly data: string;
}

export interface ReadAnswer {
  readonly event: { readonly event: WireEvent | null } | null;
  readonly checkpoint: WirePosition | null;
  readonly caughtUp: Empty | null;
}

export interface WrongExpectedVersion {
  readonly revision: Wide;
  /** There is no such stream. */
  readonly noStream: Empty | null;
}

/** A node's view of its cluster. */
export interface Gossip {
  readonly members: readonly {
    readonly state: number;
    readonly isAlive: boolean;
    readonly endPoint: { readonly host: string; readonly port: number } | null;
  }[];
}

/** The state of a member that leads. */
export const LEADER = 8;

const text = (id: number) => ({ id, type: 'string' });
const wide = (id: number) => ({ id, type: 'uint64' });
const of = (id: number, type: string) => ({ id, type });
const textMap = (id: number) => ({ id, keyType: 'string', type: 'string' });
const many = (id: number, type: string) => ({ id, type, rule: 'repeated' });
/** Fields of which at most one is set, so that a 0 differs from absence. */
const oneOf = (...fields: readonly string[]) => ({ one: { oneof: [...fields] } });

const ROOT = protobuf.Root.fromJSON({
  nested: {
    Empty: { fields: {} },
    Structured: { fields: { most: of(1, 'int64'), least: of(2, 'int64') } },
    Uuid: { fields: { structured: of(1, 'Structured'), string: text(2) }, oneofs: oneOf('structured', 'string') },
    Stream: { fields: { name: text(3) } },
    Position: { fields: { commit: wide(1), prepare: wide(2) } },
    AppendOptions: {
      fields: { stream: of(1, 'Stream'), position: wide(2), noStream: of(3, 'Empty'), any: of(4, 'Empty') },
      oneofs: oneOf('position', 'noStream', 'any'),
    },
    Proposed: { fields: { id: of(1, 'Uuid'), metadata: textMap(2), customMetadata: text(3), data: text(4) } },
    AppendRequest: {
      fields: {
        correlationId: of(1, 'Uuid'),
        options: of(2, 'AppendOptions'),
        proposed: many(3, 'Proposed'),
        isFinal: of(4, 'bool'),
      },
    },
    Any: { fields: { typeUrl: text(1), value: of(2, 'bytes') } },
    Status: { fields: { message: text(2), details: of(3, 'Any') } },
    Success: { fields: { revision: wide(1), position: of(3, 'Position') } },
    AppendAnswer: { fields: { correlationId: of(1, 'Uuid'), error: of(2, 'Status'), success: of(3, 'Success') } },
    WrongExpectedVersion: { fields: { revision: wide(1), noStream: of(2, 'Empty') } },
    MaximumAppendSizeExceeded: { fields: { limit: of(1, 'uint32') } },
    BadRequest: { fields: { message: text(1) } },
    StreamOptions: {
      fields: { stream: of(1, 'Stream'), revision: wide(2), start: of(3, 'Empty'), end: of(4, 'Empty') },
      oneofs: oneOf('revision', 'start', 'end'),
    },
    AllOptions: { fields: { position: of(1, 'Position'), start: of(2, 'Empty'), end: of(3, 'Empty') } },
    Expression: { fields: { regex: text(1), prefix: many(2, 'string') } },
    Filter: {
      fields: {
        stream: of(1, 'Expression'),
        eventType: of(2, 'Expression'),
        max: of(3, 'uint32'),
        checkpointMultiplier: of(5, 'uint32'),
      },
    },
    UuidOption: { fields: { string: of(2, 'Empty') } },
    ReadOptions: {
      fields: {
        stream: of(1, 'StreamOptions'),
        all: of(2, 'AllOptions'),
        direction: of(3, 'uint32'),
        resolveLinks: of(4, 'bool'),
        count: wide(5),
        subscription: of(6, 'Empty'),
        filter: of(7, 'Filter'),
        noFilter: of(8, 'Empty'),
        uuids: of(9, 'UuidOption'),
      },
    },
    ReadRequest: { fields: { options: of(1, 'ReadOptions') } },
    Recorded: {
      fields: {
        id: of(1, 'Uuid'),
        stream: of(2, 'Stream'),
        revision: wide(3),
        prepare: wide(4),
        commit: wide(5),
        metadata: textMap(6),
        customMetadata: text(7),
        data: text(8),
      },
    },
    ReadEvent: { fields: { event: of(1, 'Recorded') } },
    EndPoint: { fields: { host: text(1), port: of(2, 'uint32') } },
    Member: { fields: { state: of(3, 'uint32'), isAlive: of(4, 'bool'), endPoint: of(5, 'EndPoint') } },
    Gossip: { fields: { members: many(1, 'Member') } },
    ReadAnswer: { fields: { event: of(1, 'ReadEvent'), checkpoint: of(3, 'Position'), caughtUp: of(8, 'Empty') } },
  },
});

type Encode<T> = (message: T) => Buffer;
/** @throws {Error} the bytes are not such a message */
type Decode<T> = (bytes: Uint8Array) => T;

function encoder(name: string): (message: object) => Buffer {
  const type = ROOT.lookupType(name);
  return (message) => type.encode(message).finish() as Buffer;
}

/** What the server sends. */
interface Incoming {
  readonly AppendAnswer: AppendAnswer;
  readonly ReadAnswer: ReadAnswer;
  readonly Gossip: Gossip;
  readonly WrongExpectedVersion: WrongExpectedVersion;
  readonly MaximumAppendSizeExceeded: { readonly limit: number };
  readonly BadRequest: { readonly message: string };
}

function decoder<N extends keyof Incoming>(name: N): Decode<Incoming[N]> {
  const type = ROOT.lookupType(name);
  // Built from the description above, with every default filled in by its prototype.
  return (bytes) => type.decode(bytes) as protobuf.Message & Incoming[N];
}

const encodeAppend: Encode<AppendRequest> = encoder('AppendRequest');
const decodeAppendAnswer = decoder('AppendAnswer');
const encodeRead: Encode<ReadRequest> = encoder('ReadRequest');
export const decodeReadAnswer = decoder('ReadAnswer');
const encodeEmpty: Encode<Empty> = encoder('Empty');
const decodeGossip = decoder('Gossip');
export const decodeWrongExpectedVersion = decoder('WrongExpectedVersion');
export const decodeMaximumAppendSizeExceeded = decoder('MaximumAppendSizeExceeded');
export const decodeBadRequest = decoder('BadRequest');

/** A number of up to 53 bits; larger ones come out inexact. */
export function narrow({ low, high }: Wide): number {
  return (high >>> 0) * 2 ** 32 + (low >>> 0);
}

const STREAMS = '/event_store.client.streams.Streams';
const GOSSIP = '/event_store.client.gossip.Gossip';

/** Begins a streaming call that answers each append. */
export function batchAppend(
  streams: Client,
  metadata: Metadata,
  options: CallOptions,
): ClientDuplexStream<AppendRequest, AppendAnswer> {
  return streams.makeBidiStreamRequest(`${STREAMS}/BatchAppend`, encodeAppend, decodeAppendAnswer, metadata, options);
}

/** Begins a read call. */
export function read(
  streams: Client,
  request: ReadRequest,
  { metadata, options }: { readonly metadata: Metadata; readonly options: CallOptions },
): ClientReadableStream<ReadAnswer> {
  return streams.makeServerStreamRequest(`${STREAMS}/Read`, encodeRead, decodeReadAnswer, request, metadata, options);
}

/** Asks a node for its view of the cluster. The callback is called once, after this has returned. */
export function gossip(node: Client, answered: requestCallback<Gossip>): ClientUnaryCall {
  return node.makeUnaryRequest(`${GOSSIP}/Read`, encodeEmpty, decodeGossip, {}, answered);
}
