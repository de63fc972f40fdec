"""A strict client: reads the frames of one process and says which of them a client would choke on.

    check_frames.py DESCRIPTORS < frames.jsonl
    check_frames.py DESCRIPTORS --self-test SAMPLES

DESCRIPTORS is a serialized FileDescriptorSet. What is checked stands in ../README.md.
"""

import argparse
import json
import pathlib
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

FRAME_TYPE = "pinocchio.chatapp.rpc.v1.RpcLine"
ANY_TYPE = "google.protobuf.Any"
PROTOCOL_VERSION = 1
# Extensions have field numbers from here up, and files of their own.
EXTENSION_NUMBER_MIN = 200
KNOWN_FILES = ("pinocchio/", "google/protobuf/")


class Rejected(Exception):
    """Why a frame is wrong."""


class Client:
    """Parses lines as a client that knows the published messages and nothing else."""

    def __init__(self, descriptors):
        self.pool = known_messages(descriptors)
        self.frame_class = self.message_class(FRAME_TYPE)

    def message_class(self, name):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def parse(self, line):
        """The frame on `line`; raises `Rejected`."""
        if len(line.splitlines()) != 1 or "\r" in line:
            raise Rejected("a reader that splits on every line separator sees more than one line")
        frame = self.frame_class()
        try:
            json_format.Parse(line, frame, descriptor_pool=self.pool)
            self.unpack_payloads(frame)
            self.compare_with_canonical(frame, line)
        except (json_format.Error, ValueError, TypeError, KeyError) as error:
            raise Rejected(str(error)) from error
        return frame

    def unpack_payloads(self, message):
        """Turns every `Any` in `message` into its own type: a wrong type name or wrong bytes raise."""
        if message.DESCRIPTOR.full_name == ANY_TYPE:
            payload = self.message_class(payload_type(message))()
            if not message.Unpack(payload):
                raise Rejected(f"cannot unpack {message.type_url}")
            message = payload
        for field, value in message.ListFields():
            if field.message_type and not field.message_type.GetOptions().map_entry:
                for child in value if field.is_repeated else [value]:
                    self.unpack_payloads(child)

    def compare_with_canonical(self, frame, line):
        canonical = json_format.MessageToDict(frame, descriptor_pool=self.pool)
        # As text, for Python holds 1, 1.0 and True to be equal.
        if comparable(canonical) != comparable(json.loads(line)):
            raise Rejected(f"not canonical protobuf JSON, which is {json.dumps(canonical)}")


class Stream:
    """What the frames of one process owe each other."""

    def __init__(self):
        self.last_lines = {}  # request id -> line of its last frame
        self.done = set()
        self.ordinal = 0
        self.ordinal_request = ""
        self.backend_ordinal = 0
        self.last_frame = None

    def add(self, number, frame):
        """Takes the next frame; raises `Rejected` if it cannot follow those before it."""
        first, self.last_frame = self.last_frame is None, frame
        kind = frame.WhichOneof("frame")
        if (kind == "hello") != first:
            raise Rejected("hello is the first frame and no other")
        if frame.version != PROTOCOL_VERSION:
            raise Rejected(f"version {frame.version}")
        self.add_to_request(number, frame, kind)
        if kind in ("ui_event", "backend_event"):
            self.add_event(frame, kind)
        if kind is None:
            raise Rejected("a line without a frame")

    def add_to_request(self, number, frame, kind):
        request = frame.request_id
        if not request:
            return
        if request in self.done:
            raise Rejected(f"request {request} is done already")
        self.last_lines[request] = number
        if kind == "done":
            self.done.add(request)

    def add_event(self, frame, kind):
        event = getattr(frame, kind)
        message_name = payload_type(event.payload).rpartition(".")[2]
        if event.name != message_name:
            raise Rejected(f"event {event.name} carries a {message_name}")
        if event.ordinal == 0 or event.ordinal < self.ordinal:
            raise Rejected(f"ordinal {event.ordinal} after {self.ordinal}")
        if event.ordinal == self.ordinal and frame.request_id != self.ordinal_request:
            raise Rejected(f"ordinal {event.ordinal} belongs to {self.ordinal_request}")
        if kind == "backend_event":
            if event.ordinal == self.backend_ordinal:
                raise Rejected(f"a second backend event {event.ordinal}")
            self.backend_ordinal = event.ordinal
        self.ordinal, self.ordinal_request = event.ordinal, frame.request_id

    def unfinished(self, number):
        """Yields what is missing after the last frame, which stood on line `number`."""
        for request, line in self.last_lines.items():
            if request not in self.done:
                yield line, f"request {request} has no done"
        if not is_last_frame(self.last_frame):
            yield number, "the stream breaks off"


def is_last_frame(frame):
    """Whether a process may end with `frame`."""
    if frame is None:
        return False
    if frame.WhichOneof("frame") == "error":
        return frame.error.terminal
    return frame.WhichOneof("frame") in ("hello", "done")


def known_messages(descriptors):
    """A pool with what is published: a default stream that needs more is an error of the server."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        if file.name.startswith(KNOWN_FILES):
            keep(file.dependency, lambda path: path.startswith(KNOWN_FILES))
            for message in file.message_type:
                keep(message.field, lambda field: field.number < EXTENSION_NUMBER_MIN)
            pool.AddSerializedFile(file.SerializeToString())
    return pool


def keep(repeated, wanted):
    kept = [item for item in repeated if wanted(item)]
    del repeated[:]
    repeated.extend(kept)


def payload_type(payload):
    return payload.type_url.rpartition("/")[2]


def comparable(value):
    return json.dumps(value, sort_keys=True)


def check(client, data):
    """The failures in `data`, all that a process wrote, as (line number, reason); and its lines."""
    lines = data.split(b"\n")
    failures = []
    if lines.pop():
        failures.append((len(lines) + 1, "no line feed after the last frame"))
    stream = Stream()
    for number, line in enumerate(lines, 1):
        try:
            stream.add(number, client.parse(line.decode("utf-8")))
        except (Rejected, UnicodeDecodeError) as error:
            failures.append((number, str(error)))
    failures.extend(stream.unfinished(len(lines)))
    return failures, len(lines)


def report(client, data):
    failures, line_count = check(client, data)
    for number, reason in failures:
        print(f"line {number}: {reason}")
    failed = len({number for number, _ in failures})
    print(f"{max(line_count - failed, 0)} passed, {failed} failed")
    return not failures


def self_test(client, samples):
    """Whether each sample is rejected at the lines that are listed for it, and at no others."""
    listed = json.loads((samples / "index.json").read_text())
    wrong = 0
    for name, lines in listed.items():
        failures, _ = check(client, (samples / name).read_bytes())
        found = sorted({number for number, _ in failures})
        if found != lines:
            wrong += 1
            print(f"{name}: rejected lines {found}, not {lines}: {failures}")
    print(f"{len(listed) - wrong} passed, {wrong} failed")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("descriptors", type=pathlib.Path)
    parser.add_argument("--self-test", type=pathlib.Path, metavar="SAMPLES")
    arguments = parser.parse_args()
    client = Client(arguments.descriptors.read_bytes())
    if arguments.self_test:
        good = self_test(client, arguments.self_test)
    else:
        good = report(client, sys.stdin.buffer.read())
    sys.exit(0 if good else 1)


main()
