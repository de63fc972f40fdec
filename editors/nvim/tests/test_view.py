"""The view of a conversation: what frames make of it, wherever a client begins to read."""

import unittest

from harness import Test

CHAT = "type.googleapis.com/pinocchio.chatapp.v1."
READ = """
local View = require('duologue.view')
local view = View.new()
for _, step in ipairs(...) do
  if step.event then
    view:event(step.event)
  else
    view:snapshot(step.snapshot, step.is_whole)
  end
end
local lines = vim.tbl_map(function(id)
  local entity = view.entities[id]
  return { id, entity.text:all(), entity.status, entity.result }
end, view.order)
return { lines, view.ordinal_text, #view.questions }"""


def event(ordinal, name, **payload):
    return {"event": {"ordinal": str(ordinal), "payload": {"@type": CHAT + name, **payload}}}


def patch(ordinal, offset, text, mode="APPEND"):
    return event(ordinal, "ChatTextPatch", messageId="m", text=text, offset=str(offset), mode="CHAT_STREAM_PATCH_MODE_" + mode)


def message(ordinal, name, text, **more):
    payload = {"messageId": name, "role": "assistant", "status": "finished", "text": text}
    return {"kind": "ChatMessage", "id": name, "lastEventOrdinal": str(ordinal), "payload": payload, **more}


def snapshot(ordinal, *entities, is_whole=True):
    return {"snapshot": {"snapshotOrdinal": str(ordinal), "entities": list(entities)}, "is_whole": is_whole}


class View(Test):
    def view(self, *steps):
        lines, ordinal, questions = self.editor_once().lua(READ, list(steps))
        return {"texts": [line[1] for line in lines], "lines": lines, "ordinal": ordinal, "questions": questions}

    def test_offsets_count_bytes_and_a_patch_may_come_twice(self):
        started = event(1, "ChatTextSegmentStarted", messageId="m", role="assistant", status="streaming")
        view = self.view(started, patch(2, 0, "grö"), patch(3, 4, "ße"), patch(3, 4, "ße"), patch(4, 7, "😀!"))
        self.assertEqual(view["texts"], ["größe😀!"])
        view = self.view(started, patch(2, 0, "abc"), patch(3, 1, "x"), patch(4, 2, "y"))
        self.assertEqual(view["texts"], ["axy"])
        for mode in ("SNAPSHOT", "REPLACE"):
            view = self.view(started, patch(2, 0, "abc"), patch(3, 3, "whole", mode))
            self.assertEqual(view["texts"], ["whole"])

    def test_events_before_the_snapshot_are_in_it(self):
        view = self.view(snapshot(10, message(9, "m", "abc")), patch(5, 0, "old"), patch(11, 3, "d"))
        self.assertEqual((view["texts"], view["ordinal"]), (["abcd"], "11"))

    def test_a_part_changes_what_it_has(self):
        first = snapshot(10, message(3, "a", "one"), message(9, "b", "two"))
        tombstone = {"kind": "ChatMessage", "id": "a", "lastEventOrdinal": "12", "tombstone": True}
        view = self.view(first, snapshot(12, tombstone, message(11, "c", "three"), is_whole=False))
        self.assertEqual((view["texts"], view["ordinal"]), (["two", "three"], "12"))

    def test_a_whole_snapshot_drops_what_it_does_not_have(self):
        view = self.view(snapshot(10, message(3, "a", "one"), message(9, "b", "two")), snapshot(14, message(3, "a", "one")))
        self.assertEqual(view["texts"], ["one"])

    def test_what_is_not_newer_stays_unless_events_were_lost(self):
        first = snapshot(10, message(3, "a", "one"))
        again = snapshot(11, message(3, "a", "another"))
        degraded = {"event": {"ordinal": "10", "payload": {"@type": "type.googleapis.com/duologue.session.v1.StoreDegraded"}}}
        self.assertEqual(self.view(first, again)["texts"], ["one"])
        self.assertEqual(self.view(first, degraded, again)["texts"], ["another"])
        # Ordinals that were not stored are given out again.
        lower = self.view(first, degraded, snapshot(5, message(3, "a", "one")), patch(6, 0, "new"))
        self.assertEqual((lower["texts"], lower["ordinal"]), (["one", "new"], "6"))

    def test_ordinals_that_no_number_of_lua_has_are_asked_with_as_they_came(self):
        self.assertEqual(self.view(snapshot(4611686018427387903))["ordinal"], "4611686018427387903")

    def test_a_call_has_its_result_and_its_question(self):
        call = {"kind": "ChatToolCall", "id": "c", "lastEventOrdinal": "3", "payload": {"toolCallId": "c", "toolName": "t", "status": "completed", "input": "{}"}}
        result = {"kind": "ChatToolResult", "id": "c:result", "lastEventOrdinal": "6", "payload": {"toolCallId": "c", "result": "done", "status": "success"}}
        asked = {"kind": "ToolApproval", "id": "c:approval", "lastEventOrdinal": "4", "payload": {"toolCallId": "c", "toolName": "t", "input": "{}"}}
        view = self.view(snapshot(5, call, asked))
        self.assertEqual((view["lines"], view["questions"]), ([["c", "{}", "completed"]], 1))
        view = self.view(snapshot(5, call, asked), snapshot(7, call, result))
        self.assertEqual((view["lines"], view["questions"]), ([["c", "{}", "completed", "done"]], 0))
        dropped = {"event": {"ordinal": "8", "payload": {"@type": "type.googleapis.com/duologue.session.v1.TurnDropped", "toolCallIds": ["c"]}}}
        self.assertEqual(self.view(snapshot(5, call, asked), dropped)["questions"], 0)

    def test_json_is_indented_in_its_own_order_and_spelling(self):
        pretty = lambda text: self.editor_once().lua("return require('duologue.blocks').pretty(...)", text)
        self.assertEqual(pretty('{"b":1,"a":2}'), '{"b":1,"a":2}')
        text = '{"z":"' + "x" * 80 + '","a":[1,{"b\\"}":"\\\\"},[],{}],"n":1.50,"t":true}'
        self.assertEqual(
            pretty(text),
            '{\n  "z": "' + "x" * 80 + '",\n  "a": [\n    1,\n    {\n      "b\\"}": "\\\\"\n    },\n    [],\n    {}\n  ],\n  "n": 1.50,\n  "t": true\n}',
        )
        # What is no JSON loses nothing but white space.
        broken = '{"a": [1, "' + "y" * 100 + "]}}}"
        self.assertEqual("".join(pretty(broken).split()), "".join(broken.split()))

    def editor_once(self):
        if not hasattr(self, "nvim"):
            self.nvim = self.editor()
        return self.nvim


if __name__ == "__main__":
    unittest.main()
