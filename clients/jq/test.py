#!/usr/bin/env python3
"""Runs the filters of duologue.jq over every golden stream, and compares what they give with what Python makes of it.

    python3 clients/jq/test.py        # jq from the PATH; DUOLOGUE_BIN for the live stream
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BINARY = os.environ.get("DUOLOGUE_BIN") or str(ROOT / "target/debug/duologue")
CHAT = "type.googleapis.com/pinocchio.chatapp.v1."


def golden():
    """The frames of every golden stream, by the name of its file."""
    for path in sorted((ROOT / "tests/golden").glob("*.txt")):
        lines = [line[2:] for line in path.read_text().splitlines() if line.startswith("< {")]
        yield path.name, [json.loads(line) for line in lines]
    for path in sorted((ROOT / "tests/golden_outputs").glob("*.txt")):
        for number, output in enumerate(path.read_text().split("\n$ ")):
            lines = [line for line in output.splitlines() if line.startswith('{"version":1,')]
            if lines:
                yield f"{path.name} {number}", [json.loads(line) for line in lines]


def jq(filter, value, *options):
    """What the filter gives for a value, or for JSON text."""
    text = value if isinstance(value, str) else json.dumps(value)
    command = ["jq", "-L", str(HERE), "-c", *options, f'include "duologue"; {filter}']
    ended = subprocess.run(command, input=text, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    # Not splitlines: text may have line separators of its own.
    return [json.loads(line) for line in ended.stdout.split("\n") if line]


def events(frames, name, package=CHAT):
    for frame in frames:
        payload = frame.get("uiEvent", {}).get("payload", {})
        if payload.get("@type") == package + name:
            yield frame, payload


def pieces(frames, name):
    return [p["text"] for _, p in events(frames, name) if "text" in p and p.get("mode", "APPEND").endswith("APPEND")]


LINE_FILTERS = "text reasoning tool_calls results usage cost errors values".split()
STREAM_FILTERS = "by_request timing".split()


def snapshots(frames):
    """Where the stream has a snapshot that events before it lead to."""
    for at, frame in enumerate(frames):
        entities = frame.get("snapshot", {}).get("entities", [])
        # Not those of a resumed session, with tombstones, or with questions to the client.
        is_plain = not any(entity.get("tombstone") or entity["kind"] == "ToolApproval" for entity in entities)
        if entities and is_plain and any("uiEvent" in before for before in frames[:at]):
            yield at


class Golden(unittest.TestCase):
    """Every filter on every stream, by one run of jq."""

    @classmethod
    def setUpClass(cls):
        streams = [{"name": name, "frames": frames, "at": list(snapshots(frames))} for name, frames in golden()]
        filters = [f"{name}: [.frames[] | {name}]" for name in LINE_FILTERS]
        filters += [f"{name}: [{name}(.frames[])]" for name in STREAM_FILTERS]
        filters.append("folds: [. as $s | .at[] | [fold($s.frames[:.][] | select(.snapshot | not))] | last]")
        found = jq(".[] | {" + ", ".join(filters) + "}", streams)
        cls.streams = [(stream["name"], stream["frames"], stream["at"], f) for stream, f in zip(streams, found, strict=True)]

    def each(self, check):
        self.assertGreater(len(self.streams), 50)
        for name, frames, at, found in self.streams:
            with self.subTest(name):
                check(frames, at, found)

    def test_one_line_at_a_time(self):
        def check(frames, _, found):
            for filter, name in (("text", "ChatTextPatch"), ("reasoning", "ChatReasoningPatch")):
                self.assertEqual(found[filter], pieces(frames, name))
            self.assertEqual(
                [call["id"] for call in found["tool_calls"]],
                [payload["toolCallId"] for _, payload in events(frames, "ChatToolCallRequested")],
            )
            self.assertEqual(
                [(r["requestId"], r["id"], r["status"], r["result"]) for r in found["results"]],
                [(f["requestId"], p["toolCallId"], p["status"], p.get("result", "")) for f, p in events(frames, "ChatToolResultReady")],
            )
            ends = events(frames, "ChatProviderCallFinished")
            self.assertEqual(
                [(u["requestId"], u["inputTokens"]) for u in found["usage"]],
                [(f["requestId"], p["usage"].get("inputTokens")) for f, p in ends if "usage" in p],
            )
            totals = events(frames, "UsageTotals", "type.googleapis.com/duologue.session.v1.")
            costs = [p["run"]["cost"] for _, p in totals if "cost" in p.get("run", {})]
            self.assertEqual([cost["run"] for cost in found["cost"]], costs)
            self.assertEqual(
                [(e["requestId"], e["code"]) for e in found["errors"]],
                [(f.get("requestId"), f["error"]["code"]) for f in frames if "error" in f],
            )
            objects = events(frames, "ObjectExtracted", "type.googleapis.com/duologue.extract.v1.")
            self.assertEqual(found["values"], [json.loads(p["json"]) for _, p in objects])

        self.each(check)

    def test_by_request(self):
        def check(frames, _, found):
            requests = found["by_request"]
            dones = [(f["requestId"], f["done"]["status"]) for f in frames if "done" in f and "requestId" in f]
            self.assertEqual([(r["requestId"], r["status"]) for r in requests if r["status"]], dones)
            for request in requests:
                own = [f for f in frames if f.get("requestId") == request["requestId"]]
                texts = {}
                for _, p in events(own, "ChatTextSegmentFinished"):
                    call = p["correlation"]["providerCallId"]
                    texts[call] = texts.get(call, "") + p.get("text", "")
                self.assertEqual(request["texts"], list(texts.values()))
                self.assertEqual(len(request["toolCalls"]), len(list(events(own, "ChatToolCallRequested"))))
                codes = [f["error"]["code"] for f in own if "error" in f]
                self.assertEqual(request["error"] and request["error"]["code"], codes[0] if codes else None)

        self.each(check)

    def test_fold_gives_the_snapshots_of_the_stream(self):
        compared = 0

        def check(frames, at, found):
            nonlocal compared
            for place, folded in zip(at, found["folds"], strict=True):
                # A snapshot may be a part of the conversation, or have what came before the stream.
                entities = {entity["id"]: entity for entity in frames[place]["snapshot"]["entities"]}
                mine = [entity for entity in folded["entities"] if entity["id"] in entities]
                self.assertEqual(mine, [e for e in entities.values() if e["id"] in {entity["id"] for entity in mine}])
                compared += len(mine)

        self.each(check)
        self.assertGreater(compared, 100)

    def test_timing(self):
        def check(frames, _, found):
            ends = [(f["requestId"], p["correlation"]["providerCallId"]) for f, p in events(frames, "ChatProviderCallFinished")]
            self.assertEqual([(call["requestId"], call["call"]) for call in found["timing"]], ends)
            timings = {
                p["correlation"]["providerCallId"]: p
                for _, p in events(frames, "CallTiming", "type.googleapis.com/duologue.provider.v1.")
            }
            for call in found["timing"]:
                first = timings.get(call["call"], {}).get("firstTokenMs")
                self.assertEqual(call["firstTokenMs"], None if first is None else int(first))

        self.each(check)


class Streams(unittest.TestCase):
    def test_what_is_no_frame_gives_nothing(self):
        text = '1 "x" null [] {} {"uiEvent":{}} {"uiEvent":{"payload":{"@type":"type.googleapis.com/a.B"}}} {"banner":1}\n'
        text += '{"uiEvent":5} {"uiEvent":{"payload":5}} {"done":5} {"snapshot":5} {"error":5} {"requestId":5,"done":{}}\n'
        self.assertEqual(jq(", ".join(LINE_FILTERS), text), [])
        self.assertEqual(jq("by_request(inputs)", text, "-n"), [])
        self.assertEqual(jq("timing(inputs)", text, "-n"), [])
        self.assertEqual(jq("fold(inputs)", text, "-n"), [{"snapshotOrdinal": "0", "entities": []}])

    def test_lines_after_what_is_no_frame_count(self):
        text = '1 null {"requestId":"a","done":5} {"uiEvent":5} {"requestId":"a","done":{"status":"ok"}}'
        self.assertEqual([request["status"] for request in jq("by_request(inputs)", text, "-n")], ["ok"])

    def test_an_error_without_detail_has_no_class(self):
        [error] = jq("errors", {"error": {"code": "run_failed"}})
        self.assertEqual((error["code"], error["class"]), ("run_failed", None))

    def test_values_are_those_of_the_last_call(self):
        def event(name, **payload):
            return {"requestId": "a", "uiEvent": {"payload": {"@type": "type.googleapis.com/" + name, **payload}}}

        def value(json):
            return event("duologue.extract.v1.ObjectExtracted", json=json)

        call = event("pinocchio.chatapp.v1.ChatProviderCallStarted")
        frames = [call, value("1"), call, value("2"), value("3"), {"requestId": "a", "done": {"status": "ok"}}]
        [request] = jq("by_request(.[])", frames)
        self.assertEqual(request["values"], [2, 3])

    def test_a_text_is_patched_at_bytes(self):
        patch = {"@type": CHAT + "ChatTextPatch", "messageId": "m", "mode": "CHAT_STREAM_PATCH_MODE_APPEND"}
        texts = [("0", "süß"), ("5", "e"), ("3", "n")]
        frames = [
            {"uiEvent": {"ordinal": str(at), "payload": {**patch, "offset": offset, "text": text}}}
            for at, (offset, text) in enumerate(texts, 1)
        ]
        [folded] = jq("fold(.[])", frames)
        self.assertEqual(folded["entities"][0]["payload"]["text"], "sün")

    def test_fold_has_compactions_until_their_turn_is_dropped(self):
        requests = [{"enable": {"extensions": ["compaction"]}}, {"edit": {"dropLastTurn": {}}}]
        requests += [{"submit": {"prompt": prompt}} for prompt in ("one", "two", "three")]
        requests += [{"compact": {"keepTurns": 1}}, {"submit": {"prompt": "four"}}, {"snapshot": {}}]
        requests += [{"edit": {"dropLastTurn": {}}}, {"snapshot": {}}] * 2
        server = subprocess.Popen([BINARY, "rpc", "--engine=echo", "--final-snapshot=none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        frames = []
        for number, request in enumerate(requests):
            server.stdin.write(json.dumps({"requestId": f"r{number}", **request}).encode() + b"\n")
            server.stdin.flush()
            while not frames or frames[-1].get("requestId") != f"r{number}" or "done" not in frames[-1]:
                frames.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        self.assertEqual(server.wait(), 0)
        server.stdout.close()
        counts = []
        for at in (at for at, frame in enumerate(frames) if "snapshot" in frame):
            [folded] = jq("[fold(.[])] | last", [frame for frame in frames[:at] if "snapshot" not in frame])
            self.assertEqual(folded["entities"], frames[at]["snapshot"]["entities"])
            counts.append(sum(entity["kind"] == "Compaction" for entity in folded["entities"]))
        self.assertEqual(counts, [1, 1, 0])

    def test_a_stream_without_end(self):
        """The filters give what is whole while the stream goes on."""
        server = subprocess.Popen([BINARY, "rpc", "--engine=echo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        filter = 'include "duologue"; by_request(inputs) | .text'
        reader = subprocess.Popen(
            ["jq", "-L", str(HERE), "--unbuffered", "-rn", filter], stdin=server.stdout, stdout=subprocess.PIPE, text=True
        )
        server.stdout.close()
        for turn in (1, 2):
            server.stdin.write(b'{"requestId":"r%d","submit":{"prompt":"hi"}}\n' % turn)
            server.stdin.flush()
            self.assertEqual(reader.stdout.readline(), f"Turn {turn}. You said: hi\n")
            if turn == 2:
                self.assertEqual(reader.stdout.readline(), "Before that you said: hi\n")
        server.stdin.close()
        self.assertEqual((server.wait(), reader.wait()), (0, 0))
        reader.stdout.close()


if __name__ == "__main__":
    print(subprocess.run(["jq", "--version"], capture_output=True, text=True).stdout.strip(), file=sys.stderr)
    unittest.main()
