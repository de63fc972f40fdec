#!/usr/bin/env python3
"""A server of the protocol that makes it difficult for its client, for the tests of the client libraries.

A client starts it in the place of `duologue`; the variable DIFFICULT says how it behaves, as in DIFFICULT=die:3.

    normal        answers each prompt with "Hello, wörld!"
    repeat        answers each prompt with its request, as JSON
    halves        writes every line in pieces, also between the bytes of a character
    long:BYTES    an answer whose only patch has so many bytes
    burst:N       an answer of N patches in one write, made before it
    endless       an answer that ends with a cancel alone
    stubborn      an answer that ends with nothing, not even with a cancel
    slow-stop     answers each prompt with how many have come; the run of the prompt "on" goes on, and once it is cancelled
                  it ends with the next request that is neither a cancel nor a prompt
    long-first:N  answers the first prompt with N patches of 10,000 bytes, and then the next
    calls         answers with two calls of the model, with a value in each
    unknown       events, fields, frames, entities, enum values and capabilities of a server that does not exist yet
    die:N         ends with status 9 after N lines, with a word on standard error
    die-half:N    the same, after half of the line that comes next
    die-asked     writes one patch, refuses other prompts, and at the next request ends like that
    silent        writes hello, and answers nothing
    mute          writes nothing
    deaf          answers nothing, and ignores SIGTERM and the end of its input
    old           its version is older than any client accepts
    foreign       speaks another protocol
    no-hello      begins with another frame
    garbage:N     writes a line that is no frame among those of an answer: text, or JSON that is no object
    flood         writes 2 MiB to standard error before each line, without a line feed
    resumed       begins with the snapshot of a session, and says what has changed since the event that it is asked for
    unreadable    the same, and then it can't read the session
    leftovers     writes frames of requests that have ended, or that nobody has sent
    notices       writes an event and an error of no request before each answer
"""

import json
import os
import queue
import signal
import sys
import threading

CHAT = "type.googleapis.com/pinocchio.chatapp.v1."
FLOOD_BYTES = 2 * 1024 * 1024
DEATH = 9
GARBAGE = [b"INFO this is no frame", b"5", b'"a text"', b"true", b"null", b"[]", b"[1]"]
FIRST = "chat-msg-0:text:segment-1"

scenario, _, argument = os.environ.get("DIFFICULT", "normal").partition(":")
number = int(argument or 0)
requests = queue.Queue()
burst = []
lines_written = 0
ordinal = 0
prompts = 0
out = sys.stdout.buffer


def write(**frame):
    raw({"version": 1, "sessionId": "difficult", **frame})


def raw(frame):
    line = frame if isinstance(frame, bytes) else json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    global lines_written
    if scenario == "flood":
        os.write(2, b"x" * FLOOD_BYTES)
    if scenario in ("die", "die-half") and lines_written == number:
        if scenario == "die-half":
            out.write(line[: len(line) // 2])
            out.flush()
        die()
    lines_written += 1
    if scenario == "halves":
        for at in range(0, len(line), 7):
            out.write(line[at : at + 7])
            out.flush()
        return
    if scenario == "burst":
        burst.append(line)  # until it is whole
        return
    out.write(line)
    out.flush()


def die():
    os.write(2, "the difficult server has died\n".encode())
    os._exit(DEATH)


def event(request, name, package=CHAT, **payload):
    global ordinal
    ordinal += 1
    owner = {"requestId": request} if request else {}
    write(**owner, uiEvent={"ordinal": str(ordinal), "name": name, "payload": {"@type": package + name, **payload}})


def done(request, status="ok"):
    write(requestId=request, done={"status": status})
    flush_burst()


def flush_burst():
    lines = b"".join(burst)
    burst.clear()
    out.write(lines)
    out.flush()


def hello():
    version = "0.0.1" if scenario == "old" else "0.1.0"
    capabilities = ["ui-events", "snapshot", "done", "multi-turn", "cancel", "server-version=" + version]
    capabilities += ["max-request-bytes=10485760"]
    if scenario == "unknown":
        capabilities += ["telepathy", "mood=good"]
    protocol = "example.other.v1" if scenario == "foreign" else "pinocchio.chatapp.rpc.v1"
    write(hello={"protocol": protocol, "server": "duologue", "capabilities": capabilities})
    if scenario in ("resumed", "unreadable"):
        write(snapshot={"snapshotOrdinal": "1000", "entities": []})


def is_cancelled():
    """Answers what has come meanwhile; True if it was a cancel that ends the run."""
    cancelled = False
    while not requests.empty():
        request = requests.get()
        if request is None:
            os._exit(0)
        if "cancel" in request:
            cancelled = True
            done(request["requestId"])
        elif "shutdown" in request and cancelled and scenario != "stubborn":
            requests.put(request)  # for when the run has ended
            break
        elif "shutdown" in request:
            os._exit(0)
        elif "submit" in request:
            refuse(request)
        else:
            other(request)
    return cancelled and scenario != "stubborn"


def refuse(request):
    write(requestId=request["requestId"], error={"code": "session_busy", "message": "A run is active."})
    done(request["requestId"], "failed")


def wait_for_the_end():
    """Waits for a cancel, and then for a request that is neither another nor a prompt; or ends with that."""
    cancelled = False
    while True:
        request = requests.get()
        if request is None:
            os._exit(0)
        if "submit" in request:
            refuse(request)
        elif scenario == "die-asked":
            die()
        elif "cancel" in request:
            cancelled = True
            done(request["requestId"])
        elif "shutdown" in request:
            requests.put(request)  # for when the run has ended
            return
        else:
            other(request)
            if cancelled:
                return


def patches(request):
    match scenario:
        case "repeat":
            yield json.dumps(request)
        case "long":
            yield "x" * number
        case "burst":
            for at in range(number):
                yield f"word {at} "
        case "slow-stop":
            yield f"prompt {prompts}"
        case "die-asked":
            yield "Hello, "
        case "long-first" if prompts == 1:
            for _ in range(number):
                yield "x" * 10_000
        case "endless" | "stubborn":
            while True:
                yield "and so on "
        case _:
            yield "Hello, "
            yield "wörld!"


def submit(line):
    global prompts
    prompts += 1
    request = line["requestId"]
    root = f"chat-msg-{ordinal}"
    segment = root + ":text:segment-1"
    newer = {"novelty": {"deep": [1, 2]}} if scenario == "unknown" else {}
    correlation = {
        "sessionId": "difficult",
        "runId": f"run-{root}",
        "turnId": "turn-1",
        "providerCallId": f"run-{root}:call-1",
        "segmentId": "segment-1",
    }
    event(request, "ChatUserMessageAccepted", messageId=root + "-user", role="user", status="accepted", text="?")
    event(request, "ChatRunStarted", messageId=root, prompt="?")
    event(request, "ChatTextSegmentStarted", messageId=segment, role="assistant", status="streaming", streaming=True)
    if scenario == "unknown":
        event(request, "MoodChanged", "type.googleapis.com/example.mood.v9.", mood="curious")
        write(requestId=request, banner={"text": "a frame of a later version"})
    if scenario == "garbage":
        raw(GARBAGE[number] + b"\n")
    if scenario == "notices":
        event(None, "ToolServerChanged", "type.googleapis.com/duologue.tools.v1.", server="docs", state="READY")
        write(error={"code": "store_failed", "message": "The disk is full."})
    if scenario == "leftovers":
        event("nobody", "ChatTextPatch", messageId=segment, text="not for you")
        done("nobody")
    text, offset = "", 0
    status = "ok"
    for sequence, piece in enumerate(patches(line), 1):
        mode = "CHAT_STREAM_PATCH_MODE_SIDEWAYS" if scenario == "unknown" else "CHAT_STREAM_PATCH_MODE_APPEND"
        place = {"offset": str(offset)} if offset else {}
        common = {"messageId": segment, "role": "assistant", "streamId": segment, "sequence": str(sequence)}
        event(
            request,
            "ChatTextPatch",
            **{**common, **place, "text": piece, "mode": mode, "status": "streaming", "correlation": correlation},
            **newer,
        )
        offset += len(piece.encode())
        if scenario not in ("endless", "stubborn"):
            text += piece
        elif is_cancelled():
            status = "stopped"
            break
    if scenario == "die-asked" or scenario == "slow-stop" and line["submit"]["prompt"] == "on":
        wait_for_the_end()
        status = "stopped"
    if scenario == "calls":
        for at in (1, 2):
            event(request, "ChatProviderCallStarted", messageId=root)
            value = {"messageId": root, "object": {"call": at}, "json": json.dumps({"call": at})}
            event(request, "ObjectExtracted", "type.googleapis.com/duologue.extract.v1.", **value)
    finished = "stopped" if status == "stopped" else "finished"
    content = {} if scenario == "long" else {"content": text}
    event(request, "ChatTextSegmentFinished", messageId=segment, role="assistant", text=text, status=finished, **content)
    if status == "stopped":
        event(request, "ChatRunStopped", messageId=root, status="stopped")
    else:
        event(request, "ChatRunFinished", messageId=root, status="finished", durationMs="1")
    done(request, status)
    if scenario == "leftovers":
        event(request, "ChatTextPatch", messageId=segment, text="too late")


def other(request):
    name = request.get("requestId", "")
    if "enable" in request:
        # It is older than any extension.
        write(requestId=name, error={"code": "unknown_extension", "message": "There is no such extension."})
        return done(name, "failed")
    if "snapshot" in request and scenario == "unreadable":
        write(requestId=name, error={"code": "snapshot_failed", "message": "The session can't be read."})
        return done(name, "failed")
    if "snapshot" in request and scenario == "resumed":
        changed(name, request["snapshot"]["sinceOrdinal"])
    elif "snapshot" in request:
        message = {"@type": CHAT + "ChatMessageEntity", "messageId": "m", "role": "user", "text": "?", "novelty": 1}
        entities = [{"kind": "ChatMessage", "id": "m", "createdOrdinal": "1", "lastEventOrdinal": "1", "payload": message}]
        if scenario == "unknown":
            mood = {"@type": "type.googleapis.com/example.mood.v9.Mood", "mood": "curious"}
            entities.append({"kind": "Mood", "id": "mood", "createdOrdinal": "1", "lastEventOrdinal": "1", "payload": mood})
        write(requestId=name, snapshot={"snapshotOrdinal": str(ordinal), "entities": entities})
    done(name)


def changed(name, since):
    """Answers as if the first answer of `normal` had been cut off, and had had these words."""
    message = {"@type": CHAT + "ChatMessageEntity", "messageId": FIRST, "role": "assistant", "text": f"Hello, since {since}"}
    entity = {"kind": "ChatMessage", "id": FIRST, "createdOrdinal": "3", "lastEventOrdinal": "1000", "payload": message}
    write(requestId=name, snapshot={"snapshotOrdinal": "1000", "entities": [entity]})


def read():
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    requests.put(None)


def main():
    if scenario == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if scenario == "no-hello":
        done("early")
    elif scenario != "mute":
        hello()
    flush_burst()
    threading.Thread(target=read, daemon=True).start()
    while True:
        request = requests.get()
        if scenario == "deaf":
            signal.pause()
        if request is None:
            os._exit(0)
        if scenario in ("silent", "mute"):
            continue
        if "submit" in request:
            submit(request)
        elif "shutdown" in request:
            done(request["requestId"], "shutdown")
            os._exit(0)
        else:
            other(request)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(0)
