"""The examples do what they say, and the README has them as they are."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.support import BINARY, ROOT, script

HERE = Path(__file__).parents[1]


def run(example, *args, **variables):
    env = {"PYTHONPATH": str(HERE), "PATH": os.environ["PATH"], "DUOLOGUE_BIN": BINARY, "DUOLOGUE_ENGINE": "echo"}
    command = [sys.executable, str(HERE / "examples" / example), *args]
    ended = subprocess.run(command, env={**env, **variables}, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


class Examples(unittest.TestCase):
    def test_ask(self):
        self.assertEqual(
            run("ask.py"),
            "Turn 1. You said: What is a duologue?\n"
            "Turn 2. You said: Explain it to a child.\nBefore that you said: What is a duologue?\n",
        )

    def test_tools(self):
        self.assertEqual(
            run("tools.py", DUOLOGUE_ECHO_SCRIPT=str(ROOT / "examples/tool_calls.jsonl")),
            'get_time {"city":"Berlin"} -> {"result":"12:00"}\n'
            "get_time {\"city\":\"Oz\"} -> KeyError: 'Oz'\n"
            "It is noon in Berlin. I found no city called Oz.\n",
        )

    def test_values(self):
        with script({"text": '{"name": "Berlin", "population": 3700000}'}) as option:
            self.assertEqual(run("values.py", DUOLOGUE_ECHO_SCRIPT=option.partition("=")[2]), "Berlin 3700000\n")

    def test_session(self):
        with tempfile.TemporaryDirectory() as folder:
            answer = "Turn 1. You said: My name is Ada."
            self.assertEqual(
                run("session.py", folder + "/chat.db"), f"{answer}\nuser: My name is Ada.\nassistant: {answer}\n"
            )
            self.assertIn("Before that you said: My name is Ada.", run("session.py", folder + "/chat.db"))

    def test_the_readme_has_code_of_the_examples(self):
        examples = "".join(path.read_text() for path in (HERE / "examples").glob("*.py"))
        blocks = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            self.assertIn(block, examples)
