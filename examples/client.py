"""Holds duologue as a subprocess: asks two questions, one after the other, and prints the answers as they stream.

    python3 examples/client.py [command of duologue, for example: target/debug/duologue rpc]
"""

import json
import subprocess
import sys


class Conversation:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.requests = 0

    def ask(self, prompt):
        """Yields the answer in pieces. Raises if the run fails, once it has ended."""
        self.requests += 1
        request_id = f"r{self.requests}"
        print(json.dumps({"requestId": request_id, "submit": {"prompt": prompt}}), file=self.process.stdin, flush=True)
        failure = None
        for line in self.process.stdout:
            frame = json.loads(line)
            if frame.get("requestId") != request_id:
                continue
            if frame.get("uiEvent", {}).get("name") == "ChatTextPatch":
                yield frame["uiEvent"]["payload"]["text"]
            if "error" in frame:
                message, detail = frame["error"]["message"], frame["error"].get("detail", "")
                failure = message if detail in message else f"{message} ({detail})"
            if frame.get("done", {}).get("status") == "failed":
                raise RuntimeError(failure)
            if "done" in frame:
                return
        raise RuntimeError("duologue ended before it had answered; see its standard error")

    def close(self):
        """End of input is all the goodbye it needs."""
        self.process.stdin.close()
        return self.process.wait()


if __name__ == "__main__":
    conversation = Conversation(sys.argv[1:] or ["duologue", "rpc"])
    for question in ["What is a duologue?", "And what is it good for?"]:
        print("you:", question)
        print("it: ", end="")
        for piece in conversation.ask(question):
            print(piece, end="", flush=True)
        print()
    sys.exit(conversation.close())
