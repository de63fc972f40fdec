"""Holds a conversation at a node, with types generated from the published files.

    fleet.py PROTO HOST:PORT SESSION

PROTO is the folder `proto` of the repository. docs/fleet.md quotes the part between the two lines of dashes.
"""

import pathlib
import queue
import sys
import tempfile

import grpc
from grpc_tools import protoc


def generate(proto, target):
    """What `python -m grpc_tools.protoc` does, for all files."""
    files = [str(path) for path in pathlib.Path(proto).rglob("*.proto")]
    well_known = pathlib.Path(protoc.__file__).parent / "_proto"
    paths = [f"-I{proto}", f"-I{well_known}", f"--python_out={target}", f"--grpc_python_out={target}"]
    assert protoc.main(["protoc", *paths, *files]) == 0
    sys.path.insert(0, target)


# ----
def ask(node, session, prompts):
    from duologue.fleet.v1.fleet_pb2 import Attach, ConverseRequest
    from pinocchio.chatapp.rpc.v1.rpc_pb2 import RpcRequestLine, SubmitPromptRequest
    from pinocchio.chatapp.v1.chat_pb2 import ChatTextPatch

    requests = queue.SimpleQueue()
    requests.put(ConverseRequest(attach=Attach(session_id=session)))
    frames = node.Converse(iter(requests.get, None))
    for number, prompt in enumerate(prompts, 1):
        name, patch = f"r{number}", ChatTextPatch()
        submit = SubmitPromptRequest(prompt=prompt)
        requests.put(ConverseRequest(request=RpcRequestLine(request_id=name, submit=submit)))
        for frame in frames:
            if frame.ui_event.payload.Unpack(patch):
                yield prompt, patch.text
            if frame.error.message:
                print("error:", frame.error.message)
            if frame.request_id == name and frame.HasField("done"):
                break
    requests.put(None)  # ends the stream
# ----


def watch(node, session, since):
    """The answer to the first run after that event."""
    from duologue.fleet.v1.fleet_pb2 import Attach
    from pinocchio.chatapp.v1.chat_pb2 import ChatTextSegmentFinished

    segment = ChatTextSegmentFinished()
    for frame in node.Watch(Attach(session_id=session, since_ordinal=since)):
        frame.ui_event.payload.Unpack(segment)
        if frame.HasField("done"):
            return segment.text


def main(proto, address, session):
    with tempfile.TemporaryDirectory() as generated:
        generate(proto, generated)
        from duologue.fleet.v1 import fleet_pb2
        from duologue.fleet.v1.fleet_pb2_grpc import FleetStub

        any_size = [("grpc.max_receive_message_length", -1)]
        node = FleetStub(grpc.insecure_channel(address, options=any_size))
        last = None
        for prompt, text in ask(node, session, ["What is a duologue?", "And what is it good for?"]):
            if prompt != last:
                print(f"{'' if last is None else chr(10)}you: {prompt}\nit: ", end="")
                last = prompt
            print(text, end="")
        print(f"\nwatched: {watch(node, session, 0)}")
        named = {"session_id": session}
        print("turns:", node.Get(fleet_pb2.GetRequest(**named)).turns)
        node.Delete(fleet_pb2.DeleteRequest(**named))
        try:
            node.Get(fleet_pb2.GetRequest(**named))
        except grpc.RpcError as error:
            print("gone:", error.code() == grpc.StatusCode.NOT_FOUND)


if __name__ == "__main__":
    main(*sys.argv[1:])
