import type { JsonObject } from "@bufbuild/protobuf";
import { ProtocolError, VersionError } from "./errors.js";
import { read } from "./events.js";
import { HelloFrameSchema, type HelloFrame } from "./messages/pinocchio/chatapp/rpc/v1/rpc_pb.js";

const PROTOCOL = "pinocchio.chatapp.rpc.v1";
const SERVER_VERSION_MIN = [0, 1, 0];
const REQUEST_BYTES_MAX = 10 * 1024 * 1024;

/** The `hello` of a server that this package works with; `tail` ends the message of an error. */
export function checkHello(json: JsonObject | undefined, tail: string): HelloFrame {
  const hello = json && read(HelloFrameSchema, json);
  if (hello?.protocol !== PROTOCOL) {
    const begins = hello ? `speaks ${hello.protocol}` : "does not begin with `hello`";
    throw new ProtocolError(`The process ${begins}; this package needs ${PROTOCOL}.${tail}`);
  }
  const version = capability(hello, "server-version");
  if (isOlder(version, SERVER_VERSION_MIN)) {
    const least = SERVER_VERSION_MIN.join(".");
    throw new VersionError(`duologue ${version || "(unknown)"} is too old: this package needs ${least} or later.${tail}`);
  }
  return hello;
}

/** The longest request that the server takes. */
export function requestBytesMax(hello: HelloFrame | undefined): number {
  return Number((hello && capability(hello, "max-request-bytes")) || REQUEST_BYTES_MAX);
}

function capability(hello: HelloFrame, name: string): string {
  const word = hello.capabilities.find((word) => word.startsWith(name + "="));
  return word?.slice(name.length + 1) ?? "";
}

function isOlder(version: string, least: number[]): boolean {
  const numbers = version.split(/[-+]/)[0]!.split(".").map(Number);
  if (numbers.some(Number.isNaN) || version === "") return true;
  const difference = least.map((number, at) => (numbers[at] ?? 0) - number).find((difference) => difference !== 0);
  return (difference ?? 0) < 0;
}
