"""A proxy that lets through only the requests that the providers' own libraries could have sent.

    requests_of_sdks.py http://127.0.0.1:PORT

Each request for an answer is held against the types that the official library of its interface
declares for it: openai, anthropic, google-genai and ollama. A field that the types do not have, one
that is missing, or one of another type is answered with status 400 and the reason. Everything else
goes to the server at the given address, and its answer comes back as it is.
"""

import collections.abc
import http.client
import json
import sys
import types
import typing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import typing_extensions
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from ollama._types import ChatRequest, Message, Options, Tool
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel

PIECE_BYTES = 65536

# The body of generateContent: the library's own models of its members.
GEMINI = {
    "contents": list[gemini.Content],
    "systemInstruction": gemini.Content,
    "generationConfig": gemini.GenerationConfig,
    "tools": list[gemini.Tool],
    "toolConfig": gemini.ToolConfig,
}

# The body of /api/chat. The library takes any mapping in the place of its models.
OLLAMA = {name: field.annotation for name, field in ChatRequest.model_fields.items()} | {
    "messages": list[Message],
    "options": Options,
    "tools": list[Tool],
}

# What servers take and the libraries do not have: the reasoning that DeepSeek and OpenRouter want
# back, settings of Anthropic's version 2023-06-01 that later ones dropped, and the ids of newer
# Ollama servers.
BEYOND = {
    "MessageCreateParamsStreaming": {"temperature", "top_p"},
    "ChatCompletionAssistantMessageParam": {"reasoning_content", "reasoning_details"},
    "ToolCall": {"id"},
    "Message": {"tool_call_id"},
}

WRAPPERS = (typing.Annotated, typing.Required, typing.NotRequired,
            typing_extensions.Required, typing_extensions.NotRequired)


def problems(value, expected, path):
    """What is wrong with a JSON value, for a type as the libraries declare them."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if expected in (typing.Any, object):
        return []
    if origin in WRAPPERS:
        return problems(value, arguments[0], path)
    if origin is typing.Literal:
        return [] if value in arguments else [f"{path}: {value!r} is none of {arguments}"]
    if typing_extensions.is_typeddict(expected):
        return problems_of_object(value, expected, path)
    if isinstance(expected, type) and issubclass(expected, BaseModel):
        return problems_of_model(value, expected, path)
    if origin in (typing.Union, types.UnionType):
        return problems_of_union(value, arguments, path)
    if origin in (dict, collections.abc.Mapping):
        if isinstance(value, dict):
            return [p for k, v in value.items() for p in problems(v, arguments[1], f"{path}.{k}")]
        return [f"{path}: not an object"]
    if origin is not None and arguments:
        # list, Iterable, Sequence and their like.
        if isinstance(value, list):
            return [p for i, v in enumerate(value) for p in problems(v, arguments[0], f"{path}[{i}]")]
        return [f"{path}: not a list"]
    return problems_of_scalar(value, expected, path)


def problems_of_union(value, members, path):
    """None if one member fits; else those of the member that fits best."""
    found = [problems(value, member, path) for member in members]
    # A deeper problem belongs to the member that was meant.
    return min(found, key=lambda found: max([-len(f.split(":")[0]) for f in found], default=-999))


def problems_of_object(value, expected, path):
    if not isinstance(value, dict):
        return [f"{path}: not an object"]
    hints = typing_extensions.get_type_hints(expected, include_extras=True)
    missing = [f"{path}.{name}: missing" for name in expected.__required_keys__ if name not in value]
    unknown = unknown_names(value, hints, expected, path)
    known = [(name, item) for name, item in value.items() if name in hints]
    return missing + unknown + [p for k, v in known for p in problems(v, hints[k], f"{path}.{k}")]


def unknown_names(value, known, expected, path):
    allowed = known | dict.fromkeys(BEYOND.get(expected.__name__, ()))
    return [f"{path}.{name}: not in {expected.__name__}" for name in value if name not in allowed]


def problems_of_model(value, expected, path):
    if not isinstance(value, dict):
        return [f"{path}: not an object"]
    fields = {field.alias or name: field for name, field in expected.model_fields.items()}
    unknown = unknown_names(value, fields, expected, path)
    if expected is Message:
        # The library writes its own kind of image as the text that is sent.
        unknown += problems(value.get("images", []), list[str], f"{path}.images")
        value = {name: item for name, item in value.items() if name != "images"}
    try:
        expected.model_validate(value)
    except ValueError as why:
        return unknown + [f"{path}: {why}"]
    known = [(name, item) for name, item in value.items() if name in fields]
    nested = [(k, v, fields[k].annotation) for k, v in known if isinstance(v, (dict, list))]
    return unknown + [p for k, v, kind in nested for p in problems(v, kind, f"{path}.{k}")]


def problems_of_scalar(value, expected, path):
    if expected is None or expected is type(None):
        fits = value is None
    elif expected is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif expected is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif expected in (str, bool, dict, list):
        fits = isinstance(value, expected)
    elif isinstance(expected, type) and issubclass(expected, str):
        fits = isinstance(value, str)
    else:
        # What only a program has, as an open file.
        fits = False
    return [] if fits else [f"{path}: {value!r:.60} is not {expected}"]


def problems_of_request(path, body):
    if path == "/v1/chat/completions":
        return problems(body, CompletionCreateParamsStreaming, "body")
    if path == "/v1/responses":
        return problems(body, ResponseCreateParamsStreaming, "body")
    if path == "/v1/messages":
        return problems(body, MessageCreateParamsStreaming, "body")
    if path == "/api/chat":
        return problems_of_members(body, OLLAMA)
    if path.endswith(":streamGenerateContent"):
        return problems_of_members(body, GEMINI)
    return [f"{path}: no interface has this address"]


def problems_of_members(body, members):
    unknown = [f"body.{name}: not in the request" for name in body if name not in members]
    known = [(name, item) for name, item in body.items() if name in members]
    return unknown + [p for k, v in known for p in problems(v, members[k], f"body.{k}")]


class Proxy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.forward(b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        found = problems_of_request(urlsplit(self.path).path, json.loads(body))
        if found:
            self.answer(400, json.dumps({"error": {"message": "; ".join(found)}}).encode())
        else:
            self.forward(body)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def forward(self, body):
        upstream = http.client.HTTPConnection(urlsplit(sys.argv[1]).netloc)
        try:
            upstream.request(self.command, self.path, body, dict(self.headers))
            response = upstream.getresponse()
            self.send_response(response.status)
            for name in ("content-type", "retry-after"):
                if response.headers[name]:
                    self.send_header(name, response.headers[name])
            self.end_headers()
            # The end of the connection ends the answer, also of one that was cut off.
            while piece := response.read1(PIECE_BYTES):
                self.wfile.write(piece)
                self.wfile.flush()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            upstream.close()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
