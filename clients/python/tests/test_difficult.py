"""Servers that make it difficult, ends of all kinds, and errors."""

import asyncio
import contextlib
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

import duologue
from duologue import Duologue, TextPatch, Unknown, messages
from duologue._lines import Lines, Overlong
from duologue._process import Process
from tests.support import BINARY, DIFFICULT, ROOT, WAIT_S, difficult, pid_of, provider, real, unreachable, wait_until_gone

LINES_OF_A_RUN = 10
LONG = 64 * 1024 * 1024
# Patches of 10,000 bytes, more than may wait of a stream that is behind.
LONG_ANSWER = 2000
STARTS_AT_ONCE = 16
# Lines of the difficult server that are no frames.
KINDS_OF_GARBAGE = 7
# A program that is a while in ending: at its prompt it writes what is no frame, and hears nothing any more.
SLOW_TO_END = """#!/bin/sh
echo $$ >> "$PIDS"
[ "$DIFFICULT" = deaf ] || exec "$SERVER"
trap "" TERM
echo '{"hello":{"protocol":"pinocchio.chatapp.rpc.v1","capabilities":["server-version=0.1.0"]}}'
read -r enable && echo '{"requestId":"py-1","done":{"status":"ok"}}'
read -r submit && echo no frame
exec sleep 60
"""


def sleeper(text, on_bytes=lambda _: None):
    """A process that plays a program, without a client."""
    command = [sys.executable, "-c", "import sys, time; " + text]
    return Process(command, {}, None, on_bytes, lambda: None)


@contextlib.contextmanager
def file_in_place_of(number):
    """A file that gets the number of a descriptor that was closed."""
    with tempfile.TemporaryFile(buffering=0) as file:
        if file.fileno() != number:
            with unittest.TestCase().assertRaises(OSError):
                os.fstat(number)
            os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            if file.fileno() != number:
                os.close(number)


class Frames(unittest.IsolatedAsyncioTestCase):
    async def test_halves_of_lines(self):
        async with difficult("halves") as chat:
            self.assertEqual((await chat.run("x")).text, "Hello, wörld!")

    async def test_long_lines(self):
        async with difficult(f"long:{LONG}") as chat:
            self.assertEqual(len((await chat.run("x")).text), LONG)

    async def test_a_line_past_the_limit_fails_its_run_alone(self):
        async with difficult(f"long:{LONG // 16}", line_bytes_max=LONG // 64) as chat:
            for _ in range(2):
                with self.assertRaises(duologue.TooLong):
                    await chat.run("x")
            await chat.snapshot()

    def test_lines_of_all_sizes_in_chunks_of_all_sizes(self):
        text = b"".join(b"x" * size + b"\n" for size in range(20)) + b"rest"
        expected = [b"x" * size if size <= 10 else None for size in range(20)]
        for size in range(1, len(text) + 1):
            lines = Lines(10)
            chunks = [text[at : at + size] for at in range(0, len(text), size)]
            found = [line for chunk in chunks for line in lines.feed(chunk)]
            self.assertEqual([None if isinstance(line, Overlong) else line for line in found], expected, size)
            self.assertEqual(lines.rest, 4)

    async def test_what_is_newer_than_the_client_is_kept(self):
        async with difficult("unknown") as chat:
            stream = chat.stream("x")
            events = [event async for event in stream]
            unknown = [event for event in events if isinstance(event, Unknown)]
            self.assertEqual([(event.type, event.raw["mood"]) for event in unknown], [("example.mood.v9.MoodChanged", "curious")])
            patch = next(event for event in events if isinstance(event, TextPatch))
            self.assertEqual(patch.raw["novelty"], {"deep": [1, 2]})
            self.assertEqual(patch.mode, "CHAT_STREAM_PATCH_MODE_SIDEWAYS")
            self.assertEqual(stream.result.text, "Hello, wörld!")
            entities = (await chat.snapshot()).entities
            self.assertEqual([type(entity.payload) for entity in entities], [messages.MessageEntity, Unknown])
            self.assertIn("telepathy", chat.hello.capabilities)

    async def test_frames_of_others_reach_nobody(self):
        async with difficult("leftovers") as chat:
            for _ in range(3):
                stream = chat.stream("x")
                texts = [event.text async for event in stream if isinstance(event, TextPatch)]
                self.assertEqual(texts, ["Hello, ", "wörld!"])

    async def test_a_flood_of_standard_error(self):
        async with difficult("flood") as chat:
            self.assertEqual((await chat.run("x")).status, "ok")
            self.assertLessEqual(len(chat.stderr), 16 * 1024)

    async def test_text_among_the_frames_is_an_error(self):
        async with difficult("garbage") as chat:
            with self.assertRaisesRegex(duologue.ProtocolError, "INFO this is no frame"):
                await chat.run("x")
        for number in range(1, KINDS_OF_GARBAGE):
            with self.subTest(number):
                async with difficult(f"garbage:{number}") as chat:
                    with self.assertRaisesRegex(duologue.ProtocolError, "a line that is no frame"):
                        await chat.run("x")

    async def test_a_stream_that_is_not_read_is_left_in_the_pipe(self):
        async with difficult("endless") as chat:
            async for event in chat.stream("x"):
                if isinstance(event, TextPatch):
                    break
            stream = chat.stream("x")
            events = aiter(stream)
            await anext(events)
            while not chat._connection.is_paused:
                await asyncio.sleep(0)
            waiting = stream._request.waiting_bytes
            self.assertLess(waiting, 9 * 1024 * 1024)
            # A request that waits for its answer gets it, whoever is behind.
            await chat.snapshot()
            events.close()
            del events
            self.assertEqual(stream._request.waiting_bytes, 0)

    async def test_a_stream_that_is_awaited_does_not_wait_for_one_that_is_not_read(self):
        async with difficult(f"long-first:{LONG_ANSWER}", on_busy="queue") as chat:
            first = chat.stream("x")
            events = aiter(first)
            await anext(events)
            while not chat._connection.is_paused:
                await asyncio.sleep(0)
            second = chat.stream("y")

            async def follow():
                return [event.text async for event in second if isinstance(event, TextPatch)]

            self.assertEqual(await asyncio.wait_for(follow(), WAIT_S), ["Hello, ", "wörld!"])
            texts = [event.text async for event in events if isinstance(event, TextPatch)]
            self.assertEqual(len(texts), LONG_ANSWER)

    async def test_the_next_prompt_waits_for_a_run_that_was_stopped(self):
        async with difficult("slow-stop") as chat:
            for at, stop in enumerate((lambda stream: stream.cancel(), lambda _: chat.cancel())):
                stream = chat.stream("on")
                following = asyncio.create_task(self.follow(stream))
                while not stream._request.summary.result.message_id:
                    await asyncio.sleep(0)
                await stop(stream)
                next_run = asyncio.create_task(chat.run("next"))
                await asyncio.sleep(0)
                # Only now the run ends.
                await chat.snapshot()
                self.assertEqual((await next_run).text, f"prompt {2 * at + 2}")
                self.assertEqual(await following, "stopped")

    async def test_a_cancel_before_the_prompt_is_sent(self):
        async with difficult("slow-stop") as chat:
            async for event in chat.stream("on"):
                break
            stream = chat.stream("y")
            following = asyncio.create_task(self.follow(stream))
            await asyncio.sleep(0)
            await stream.cancel()
            self.assertEqual(await asyncio.wait_for(following, WAIT_S), "stopped")
            left = aiter(chat.stream("z"))
            waiting = asyncio.create_task(anext(left))
            await asyncio.sleep(0)
            left.close()
            await chat.snapshot()
            with self.assertRaises(StopAsyncIteration):
                await waiting
            never = chat.stream("not yet")
            await never.cancel()
            self.assertEqual((await never).status, "stopped")
            self.assertEqual((await chat.run("next")).text, "prompt 2")

    async def follow(self, stream):
        async for _ in stream:
            pass
        return stream.result.status

    async def test_two_that_wait_for_the_first_event_send_one_prompt(self):
        async with difficult("slow-stop") as chat:
            async for event in chat.stream("on"):
                break  # The next prompt waits for the end of this run.
            events = aiter(chat.stream("x"))
            firsts = [asyncio.create_task(anext(events)) for _ in range(2)]
            await asyncio.sleep(0)
            await chat.snapshot()
            await asyncio.wait_for(asyncio.gather(*firsts), WAIT_S)
            self.assertEqual([event async for event in events][-1].status, "finished")
            # That of another was the second.
            self.assertEqual((await chat.run("next")).text, "prompt 3")

    async def test_values_are_those_of_the_last_call(self):
        async with difficult("calls") as chat:
            result = await chat.run("x", answer={"type": "object"})
        self.assertEqual((result.values, result.value), ([{"call": 2}], {"call": 2}))

    async def test_events_past_the_limit_fail_their_run_alone(self):
        from duologue import _connection

        limits = {"PAUSE_BYTES": 512 * 1024, "QUEUE_BYTES_MAX": 1024 * 1024}
        for name, value in limits.items():
            self.addCleanup(setattr, _connection, name, getattr(_connection, name))
            setattr(_connection, name, value)
        async with difficult("endless") as chat:
            # While a request waits for its answer, the stream can't be left in the pipe.
            waiting = chat._connection.new({"snapshot": {}})
            chat._connection._requests[waiting.id] = waiting
            stream = chat.stream("x")
            events = aiter(stream)
            await anext(events)
            await stream._request.finished()
            with self.assertRaises(duologue.TooLong):
                await anext(events)
            await chat.snapshot()

    async def test_requests_past_the_limit_of_the_server_are_not_sent(self):
        async with real("--max-request-bytes=1000") as chat:
            with self.assertRaises(duologue.TooLong):
                await chat.run("x" * 1000)
            self.assertEqual((await chat.run("x")).status, "ok")

    async def test_requests_that_are_no_json_are_not_sent(self):
        async with real() as chat:
            for value in (float("nan"), object()):
                with self.assertRaisesRegex(duologue.DuologueError, "it is no JSON"):
                    await asyncio.wait_for(chat.run("x", settings={"stop": value}), WAIT_S)
            self.assertEqual((await chat.run("x")).status, "ok")


class Ends(unittest.IsolatedAsyncioTestCase):
    async def test_an_end_at_every_point(self):
        for scenario in ("die", "die-half"):
            for number in range(LINES_OF_A_RUN + 2):
                with self.subTest(scenario=scenario, number=number):
                    with self.assertRaises(duologue.ProcessEnded) as caught:
                        async with difficult(f"{scenario}:{number}") as chat:
                            pid = pid_of(chat)
                            await chat.run("x")
                            await chat.run("y")
                    self.assertEqual(caught.exception.status, 9)
                    self.assertIn("the difficult server has died", caught.exception.stderr)
                    self.assertIn("the difficult server has died", str(caught.exception))
                    if number > 2:
                        wait_until_gone(pid)

    async def test_a_server_that_never_answers(self):
        with self.assertRaisesRegex(duologue.ProtocolError, "did not begin within"):
            await difficult("silent", start_timeout=0.3).start()
        with self.assertRaisesRegex(duologue.ProtocolError, "did not begin within"):
            await difficult("mute", start_timeout=0.3).start()

    async def test_a_server_that_does_not_begin_in_time_has_its_standard_error_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = Path(folder, "duologue")
            binary.write_text("#!/bin/sh\necho 'waits for a lock' >&2\nread line\n")
            binary.chmod(0o755)
            with self.assertRaisesRegex(duologue.ProtocolError, "did not begin within 1 s.*waits for a lock"):
                await Duologue(binary=binary, start_timeout=1).start()

    async def test_a_run_that_can_not_be_stopped(self):
        async with difficult("stubborn", cancel_timeout=0.01) as chat:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(chat.run("x"), 0.05)
            # The prompt waits for the end of the run as long as it should, and the answer of the server counts then.
            with self.assertRaises(duologue.Busy):
                await chat.run("y")

    async def test_hello_is_checked(self):
        with self.assertRaisesRegex(duologue.VersionError, "0.0.1 is too old"):
            await difficult("old").start()
        with self.assertRaisesRegex(duologue.ProtocolError, "speaks example.other.v1"):
            await difficult("foreign").start()
        with self.assertRaisesRegex(duologue.ProtocolError, "does not begin with `hello`"):
            await difficult("no-hello").start()

    async def test_closing_goes_as_far_as_it_has_to(self):
        chat = await real().start()
        pid = pid_of(chat)
        await chat.close()
        wait_until_gone(pid)
        with self.assertRaises(duologue.Closed):
            await chat.run("x")
        # It hears neither the shutdown, nor the end of its input, nor SIGTERM.
        chat = difficult("deaf", start_timeout=0.5, close_timeout=0.05)
        with self.assertRaises(duologue.ProtocolError):
            await chat.start()

    async def test_a_signal_to_the_group_of_the_program_does_not_reach_the_process(self):
        async with real() as chat:
            self.assertNotEqual(os.getpgid(pid_of(chat)), os.getpgrp())

    async def test_closing_stops_what_runs(self):
        chat = await real("--echo-delay-ms=60000").start()
        run = asyncio.create_task(chat.run("x"))
        while chat.ordinal < 3:
            await asyncio.sleep(0)
        await chat.close()
        self.assertEqual((await run).status, "stopped")

    async def test_a_prompt_while_the_client_closes_is_closed(self):
        # It comes while the process runs, and when that has ended.
        for seconds in (0, 0.1):
            chat = await difficult("stubborn", close_timeout=0.3).start()
            stubborn = asyncio.create_task(chat.run("x"))
            while not chat.ordinal:
                await asyncio.sleep(0)
            closing = asyncio.create_task(chat.close())
            await asyncio.sleep(seconds)
            with self.assertRaises(duologue.Closed):
                await asyncio.wait_for(chat.run("y"), WAIT_S)
            with self.assertRaises(duologue.Closed):
                await stubborn
            await closing

    async def test_closing_stops_a_run_whose_stream_is_behind(self):
        from duologue import _connection

        self.addCleanup(setattr, _connection, "PAUSE_BYTES", _connection.PAUSE_BYTES)
        _connection.PAUSE_BYTES = 4096
        chat = await real("--echo-delay-ms=1").start()
        stream = chat.stream("word " * 100_000)
        events = aiter(stream)
        await anext(events)
        while not chat._connection.is_paused:
            await asyncio.sleep(0)
        # More than one read of what is in the pipe by then.
        await asyncio.sleep(0.5)
        await chat.close()
        async for _ in events:
            pass
        self.assertEqual(stream.result.status, "stopped")

    async def test_a_client_may_be_started_again(self):
        chat = real()
        for _ in range(2):
            async with chat:
                self.assertEqual((await chat.run("x")).text, "Turn 1. You said: x")

    async def test_an_end_that_is_noticed_late_is_not_that_of_the_next_process(self):
        chat = await real().start()

        async def again():
            await chat.close()
            await chat.start()

        restart = asyncio.create_task(again())
        await asyncio.sleep(0)
        # The program is busy until the process has ended, without taking its status.
        os.waitid(os.P_PID, pid_of(chat), os.WEXITED | os.WNOWAIT)
        await restart
        self.assertEqual((await chat.run("x")).text, "Turn 1. You said: x")
        await chat.close()

    async def test_what_a_process_has_written_before_its_end_is_read(self):
        chunks = []
        process = sleeper("sys.stdin.read(); print('the last line')", chunks.append)
        # As a loop that is busy until the process has ended.
        process.pause(True)
        await process.end(5)
        self.assertEqual(chunks, [b"the last line\n"])

    async def test_nothing_is_written_to_a_file_that_has_the_number_of_a_closed_pipe(self):
        process = sleeper("sys.stdin.read(); time.sleep(0.3)")
        ending = asyncio.create_task(process.end(5))
        await asyncio.sleep(0)
        with file_in_place_of(process._in) as file:
            process.write(b"a line\n")
            await process.drained()
            file.seek(0)
            self.assertEqual(file.read(), b"")
            await ending

    async def test_an_end_that_two_wait_for_reads_no_file_that_has_the_number_of_a_closed_pipe(self):
        process = sleeper("sys.stdin.read()")
        await process.end(5)
        with file_in_place_of(process._err) as file:
            file.write(b"of another")
            file.seek(0)
            await process.end(5)
            self.assertEqual(process.stderr, "")

    async def test_nothing_is_shown_twice_after_a_reconnect(self):
        with tempfile.TemporaryDirectory() as folder:
            async with real("--echo-delay-ms=5", store=folder + "/chat.db", session="ada") as chat:
                shown = []
                with self.assertRaises(duologue.ProcessEnded) as caught:
                    async for event in chat.stream("word " * 1000):
                        if isinstance(event, TextPatch):
                            shown.append(event.text)
                        if len(shown) == 20:
                            os.kill(pid_of(chat), signal.SIGKILL)
                self.assertEqual(caught.exception.status, -signal.SIGKILL)
                with self.assertRaises(duologue.ProcessEnded):
                    await chat.run("next")
                changes = await chat.reconnect()
                whole = (await chat.history())[-1].payload
                answer = [change for change in changes if change.entity.id == whole.message_id]
                self.assertEqual("".join(shown) + "".join(change.text for change in answer), whole.text)
                self.assertEqual(whole.status, "stopped")
                self.assertNotIn("user", [change.entity.payload.role for change in changes])
                self.assertEqual((await chat.run("hello")).status, "ok")

    async def test_what_no_stream_has_shown_is_unseen_after_a_reconnect(self):
        with tempfile.TemporaryDirectory() as folder:
            async with real("--echo-delay-ms=5", store=folder + "/chat.db", session="ada") as chat:
                run = asyncio.create_task(chat.run("word " * 1000))
                while chat.ordinal < 20:
                    await asyncio.sleep(0)
                os.kill(pid_of(chat), signal.SIGKILL)
                with self.assertRaises(duologue.ProcessEnded):
                    await run
                changes = await chat.reconnect()
                whole = (await chat.history())[-1].payload
                self.assertTrue(whole.text)
                self.assertEqual([change.text for change in changes], [whole.text])

    async def test_a_reconnect_that_fails_can_be_tried_again(self):
        with tempfile.TemporaryDirectory() as folder:
            async with real("--echo-delay-ms=5", store=folder + "/chat.db", session="ada") as chat:
                shown = []
                with self.assertRaises(duologue.ProcessEnded):
                    async for event in chat.stream("word " * 1000):
                        if isinstance(event, TextPatch):
                            shown.append(event.text)
                        if len(shown) == 20:
                            os.kill(pid_of(chat), signal.SIGKILL)
                snapshot = chat.snapshot

                async def without_process(**options):
                    os.kill(pid_of(chat), signal.SIGKILL)
                    return await snapshot(**options)

                async def without_time(**options):
                    raise asyncio.TimeoutError

                for failing, error in ((without_process, duologue.ProcessEnded), (without_time, asyncio.TimeoutError)):
                    with mock.patch.object(chat, "snapshot", failing), self.assertRaises(error):
                        await chat.reconnect()
                text = "".join(change.text for change in await chat.reconnect())
                self.assertEqual("".join(shown) + text, (await chat.history())[-1].payload.text)
                with self.assertRaisesRegex(duologue.DuologueError, "The process runs"):
                    await chat.reconnect()

    async def test_reconnects_at_once_are_one(self):
        env = {"DIFFICULT": "die:7"}
        async with Duologue(binary=DIFFICULT, env=env, store="chat.db", session="ada", start_timeout=10) as chat:
            with self.assertRaises(duologue.ProcessEnded):
                await chat.run("x")
            chat._connection.settings.env["DIFFICULT"] = "resumed"
            first, *others = await asyncio.gather(*(chat.reconnect() for _ in range(3)))
            self.assertEqual([change.text for change in first], ["Hello, since 4"])
            self.assertEqual(others, [first, first])
            self.assertEqual((await chat.run("x")).status, "ok")
            with self.assertRaisesRegex(duologue.DuologueError, "The process runs"):
                await chat.reconnect()

    async def test_closing_during_a_reconnect_leaves_nothing_running(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("duologue._process.TERM_S", 0.2):
            program, pids = Path(folder, "server"), Path(folder, "pids")
            program.write_text(SLOW_TO_END)
            program.chmod(0o755)
            env = {"DIFFICULT": "deaf", "PIDS": str(pids), "SERVER": DIFFICULT}
            chat = await Duologue(binary=program, env=env, store="chat.db", session="ada").start()
            with self.assertRaises(duologue.ProtocolError):
                await chat.run("x")
            chat._connection.settings.env["DIFFICULT"] = "resumed"
            # The second is the next attempt where the first one fails.
            reconnects = [asyncio.create_task(chat.reconnect()) for _ in range(2)]
            while not chat._reconnecting:
                await asyncio.sleep(0)
            await chat.close()
            for reconnect in reconnects:
                with self.assertRaises(duologue.Closed):
                    await reconnect
            with self.assertRaises(duologue.Closed):
                await chat.run("y")
            self.assertEqual(len(pids.read_text().split()), 1)
            for pid in pids.read_text().split():
                wait_until_gone(int(pid))

    async def test_a_prompt_during_a_reconnect_that_fails(self):
        env = {"DIFFICULT": "die:7"}
        for is_cancelled in (False, True):
            async with Duologue(binary=DIFFICULT, env=env, store="chat.db", session="ada") as chat:
                connection = chat._connection
                with self.assertRaises(duologue.ProcessEnded):
                    await chat.run("x")
                connection.settings.env["DIFFICULT"] = "silent"
                connection.settings.start_timeout = 30 if is_cancelled else 0.5
                reconnect = asyncio.create_task(chat.reconnect())
                while connection.failure:
                    await asyncio.sleep(0)
                prompt = asyncio.create_task(chat.run("y"))
                while not connection._requests:
                    await asyncio.sleep(0)
                if is_cancelled:
                    reconnect.cancel()
                with self.assertRaises(asyncio.CancelledError if is_cancelled else duologue.ProtocolError):
                    await reconnect
                with self.assertRaisesRegex(duologue.Closed, "could not be started"):
                    await asyncio.wait_for(prompt, WAIT_S)
                with self.assertRaises(duologue.Closed):
                    await chat.run("z")

    async def test_a_reconnect_without_a_program_can_be_tried_again(self):
        env = {"DIFFICULT": "die:7"}
        async with Duologue(binary=DIFFICULT, env=env, store="chat.db", session="ada") as chat:
            settings = chat._connection.settings
            with self.assertRaises(duologue.ProcessEnded):
                await chat.run("x")
            settings.env["DIFFICULT"] = "resumed"
            for name, value in (("program", "/nowhere/duologue"), ("cwd", "/nowhere")):
                with mock.patch.object(settings, name, value), self.assertRaises(duologue.DuologueError):
                    await chat.reconnect()
                with self.assertRaises(duologue.DuologueError):
                    await chat.run("y")
            self.assertEqual([change.text for change in await chat.reconnect()], ["Hello, since 4"])

    async def test_a_store_that_the_environment_names(self):
        with tempfile.TemporaryDirectory() as folder:
            variables = {"DUOLOGUE_STORE": folder + "/chat.db"}
            for own, outer in ((variables, {}), ({}, variables)):
                with mock.patch.dict(os.environ, outer):
                    async with real(session="ada", env=own) as chat:
                        await chat.run("one")
                        seen = len(await chat.history())
                        async with await chat.fork() as copy:
                            self.assertEqual(len(await copy.history()), seen)
                        os.kill(pid_of(chat), signal.SIGKILL)
                        with self.assertRaises(duologue.ProcessEnded):
                            await chat.run("lost")
                        await chat.reconnect()
                        self.assertEqual(len(await chat.history()), seen)
            # The option of the client is the nearer one.
            with mock.patch.dict(os.environ, variables):
                async with real(env={"DUOLOGUE_STORE": ""}) as chat:
                    await chat.run("one")
                    with self.assertRaisesRegex(duologue.DuologueError, "Only a conversation with a store"):
                        await chat.fork()

    async def test_a_program_that_changes_its_folder(self):
        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/inner")
            os.symlink(BINARY, folder + "/program")
            for cwd, store in ((None, "chat.db"), ("inner", "inner/chat.db")):
                os.chdir(folder)
                async with Duologue(binary="./program", engine="echo", store="chat.db", session="ada", cwd=cwd) as chat:
                    await chat.run("one")
                    os.chdir("/")
                    os.kill(pid_of(chat), signal.SIGKILL)
                    with self.assertRaises(duologue.ProcessEnded):
                        await chat.run("lost")
                    await chat.reconnect()
                    self.assertEqual(len(await chat.history()), 2)
                    async with await chat.fork() as copy:
                        self.assertEqual(len(await copy.history()), 2)
                self.assertTrue(os.path.exists(f"{folder}/{store}"))
            os.chdir("/")

    async def test_the_error_of_a_copy_is_that_of_what_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "server")
            program.write_text(f'#!/bin/sh\n[ "$1" = rpc ] && exec {DIFFICULT}\n[ "$1" = sessions ] && exec sleep 60\n')
            program.chmod(0o755)
            async with Duologue(binary=program, store="chat.db", session="ada") as chat:
                with mock.patch("duologue._client.FORK_S", 0.05), self.assertRaisesRegex(duologue.StoreError, "longer than 0.05 s"):
                    await chat.fork()
                program.unlink()
                with self.assertRaises(duologue.NotInstalled):
                    await chat.fork()

    async def test_a_reconnect_goes_on_where_another_was_cancelled(self):
        env = {"DIFFICULT": "die:7"}
        async with Duologue(binary=DIFFICULT, env=env, store="chat.db", session="ada") as chat:
            with self.assertRaises(duologue.ProcessEnded):
                await chat.run("x")
            chat._connection.settings.env["DIFFICULT"] = "mute"
            first = asyncio.create_task(chat.reconnect())
            second = asyncio.create_task(chat.reconnect())
            while chat._connection.failure:
                await asyncio.sleep(0)
            chat._connection.settings.env["DIFFICULT"] = "resumed"
            first.cancel()
            self.assertEqual([change.text for change in await asyncio.wait_for(second, WAIT_S)], ["Hello, since 4"])
            with self.assertRaises(asyncio.CancelledError):
                await first

    async def test_a_refused_prompt_does_not_forget_what_was_shown(self):
        async with difficult("die-asked", store="chat.db", session="ada") as chat:
            events = aiter(chat.stream("x"))
            shown = [event.text for event in [await anext(events) for _ in range(4)] if isinstance(event, TextPatch)]
            with self.assertRaises(duologue.Busy):
                await chat.run("y")
            with self.assertRaises(duologue.ProcessEnded):
                await chat.snapshot()
            chat._connection.settings.env["DIFFICULT"] = "resumed"
            changes = await chat.reconnect()
            self.assertEqual(shown + [change.text for change in changes], ["Hello, ", "since 4"])

    async def test_a_client_that_was_not_started_is_closed(self):
        chat = real()
        for use in (lambda: chat.run("x"), lambda: self.first(chat.stream("x")), chat.cancel, chat.snapshot):
            with self.assertRaisesRegex(duologue.Closed, "has not been started"):
                await use()
        await chat.close()

    async def first(self, stream):
        async for event in stream:
            return event

    async def test_only_a_stored_session_goes_on(self):
        async with real() as chat:
            with self.assertRaises(duologue.DuologueError):
                await chat.reconnect()


    async def test_an_async_close_that_is_interrupted_leaves_nobody_waiting(self):
        chat = await difficult("stubborn", close_timeout=3600).start()
        process = chat._connection.process._popen
        stream = chat.stream("x")
        events = aiter(stream)
        await anext(events)
        os.kill(process.pid, signal.SIGSTOP)
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(chat.close(), 0.05)
        self.assertEqual(process.returncode, -signal.SIGKILL)

        async def follow():
            async for _ in events:
                pass

        with self.assertRaisesRegex(duologue.Closed, "was closed"):
            await asyncio.wait_for(follow(), WAIT_S)
        await chat.close()

    async def test_a_prompt_that_is_cancelled_while_it_waits_for_the_end_of_another_reports_nothing(self):
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with difficult("stubborn") as chat:
            for _ in range(2):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(chat.run("x"), 0.05)
            gc.collect()
            await asyncio.sleep(0)
        self.assertEqual(reported, [])


class Loops(unittest.TestCase):
    def in_another_loop(self, chat):
        """What becomes of a client that was started in another loop."""

        async def use():
            for work in (chat.run("x"), chat.snapshot(), anext(aiter(chat.stream("x")))):
                with self.assertRaisesRegex(duologue.DuologueError, "another event loop"):
                    await asyncio.wait_for(work, WAIT_S)
            pid = pid_of(chat)
            await chat.close()
            wait_until_gone(pid)
            # It may be started here.
            async with chat:
                self.assertEqual((await chat.run("x")).status, "ok")

        asyncio.run(use())

    def test_a_client_in_another_event_loop_has_an_error(self):
        async def start():
            return await real().start()

        self.in_another_loop(asyncio.run(start()))
        loop = asyncio.new_event_loop()
        try:
            self.in_another_loop(loop.run_until_complete(start()))
        finally:
            loop.close()


class Killed(unittest.TestCase):
    def program(self, text, stdin=None):
        text = f"import sys\nsys.path.insert(0, {str(ROOT / 'clients/python')!r})\n" + textwrap.dedent(text)
        return subprocess.Popen([sys.executable, "-c", text, BINARY], stdin=stdin, stdout=subprocess.PIPE, text=True)

    def test_the_process_ends_with_a_program_that_is_killed(self):
        program = self.program(
            """
            import asyncio, duologue
            async def main():
                chat = await duologue.Duologue(binary=sys.argv[1], engine="echo", args=["--echo-delay-ms=60000"]).start()
                async for event in chat.stream("x"):
                    if isinstance(event, duologue.messages.ProviderCallStarted):
                        print(chat._connection.process._popen.pid, flush=True)
            asyncio.run(main())
            """
        )
        pid = int(program.stdout.readline())
        program.kill()
        program.wait()
        program.stdout.close()
        wait_until_gone(pid)

    def test_the_process_ends_with_its_loop_and_with_the_interpreter(self):
        for keep in ("del chat", "pass"):
            program = self.program(
                f"""
                import asyncio, duologue, gc
                async def start():
                    return await duologue.Duologue(binary=sys.argv[1], engine="echo").start()
                chat = asyncio.run(start())
                print(chat._connection.process._popen.pid, flush=True)
                {keep}
                """
            )
            pid = int(program.stdout.readline())
            wait_until_gone(pid)
            self.assertEqual(program.wait(), 0)
            program.stdout.close()

    def test_a_fork_of_the_program_has_an_error_and_does_not_keep_the_process(self):
        program = self.program(
            """
            import os, duologue
            from duologue.sync import Duologue
            def say(*words):
                # A line in one write: two processes write into the pipe.
                os.write(1, f"{' '.join(map(str, words))}\\n".encode())
            options = {"binary": sys.argv[1], "engine": "echo"}
            chat = Duologue(**options, args=["--echo-delay-ms=60000"]).start()
            stream = iter(chat.stream("x"))
            next(stream)
            other = Duologue(**options)
            go, begin = os.pipe()
            if os.fork() == 0:
                os.close(begin)
                for act in (lambda: chat.run("x"), lambda: list(chat.stream("y")), lambda: list(stream), chat.start):
                    try:
                        act()
                    except duologue.DuologueError as error:
                        say(error)
                chat.close()
                del chat, stream
                with other:
                    say(other.run("x").status)
                os.read(go, 1)  # Until the program has ended, and its test too.
                os.close(1)
                os._exit(0)
            os.close(go)
            say(chat.cancel(), chat._chat._connection.process._popen.pid)
            sys.stdin.read()
            """,
            stdin=subprocess.PIPE,
        )
        lines = [program.stdout.readline() for _ in range(6)]
        error = "The client was started in another process, of which this one is a fork: start one in this process.\n"
        own = next(line for line in lines if line.startswith("True "))
        self.assertEqual(sorted(lines), sorted([error] * 4 + ["ok\n", own]))
        program.kill()
        program.wait()
        wait_until_gone(int(own.split()[-1]))
        program.stdin.close()
        program.stdout.close()

    def test_a_callback_that_never_returns_ends_with_the_program(self):
        program = self.program(
            """
            import asyncio, threading, duologue
            from duologue._tools import decide
            forever = threading.Event()
            def slow():
                forever.wait()
            async def main():
                tool = duologue._tools.tool_of(duologue.tool(timeout=0.01)(slow))
                # As many as would take all threads of the loop.
                calls = [tool.call({}) for _ in range(100)]
                results = await asyncio.gather(*calls)
                print({result["error"] for result in results}, await asyncio.to_thread(lambda: "a thread is left"))
            asyncio.run(main())
            """
        )
        out, _ = program.communicate(timeout=WAIT_S)
        self.assertEqual((out, program.returncode), ("{'The tool took longer than 0.01 s.'} a thread is left\n", 0))

    def test_a_close_that_is_interrupted_leaves_nobody_waiting(self):
        program = self.program(
            f"""
            import asyncio, os, signal, sys, threading, duologue
            from duologue.sync import Duologue
            chat = Duologue(binary={DIFFICULT!r}, env={{"DIFFICULT": "stubborn"}}, close_timeout=3600).start()
            process = chat._chat._connection.process._popen
            has_begun = threading.Event()
            def follow():
                try:
                    for _ in chat.stream("x"):
                        has_begun.set()
                except duologue.Closed:
                    print("the stream is closed")
            def run():
                try:
                    chat.run("y")
                    print("no error")
                except duologue.Closed:
                    print("the run is closed")
            threads = [threading.Thread(target=follow)]
            threads[0].start()
            has_begun.wait()
            process.send_signal(signal.SIGSTOP)
            def interrupted(work):
                # As with Ctrl-C that comes when the main thread waits for the end.
                future = asyncio.run_coroutine_threadsafe(work, chat._loop)
                while not chat._chat._connection._is_closing:
                    pass
                future.cancel()
                raise KeyboardInterrupt
            chat._wait = interrupted
            try:
                chat.close()
            except KeyboardInterrupt:
                print("interrupted")
            threads[0].join()
            print(process.poll() is not None)
            del chat._wait
            run()
            """
        )
        out, _ = program.communicate(timeout=WAIT_S)
        self.assertEqual(sorted(out.splitlines()), ["True", "interrupted", "the run is closed", "the stream is closed"])

    def test_the_process_ends_with_a_client_that_is_dropped(self):
        from duologue.sync import Duologue

        chat = Duologue(binary=BINARY, engine="echo").start()
        pid = pid_of(chat._chat)
        del chat
        gc.collect()
        wait_until_gone(pid)


class Errors(unittest.IsolatedAsyncioTestCase):
    def test_errors_can_be_pickled_and_copied(self):
        from duologue._errors import error_of

        answer = duologue.AnswerError("invalid_answer", "no", "why")
        answer.text = "text"
        errors = [
            answer,
            duologue.ProcessEnded("ended", -9, "stderr"),
            duologue.ConfigError("run_failed", "requests a wait of 7 s", "config: x"),
            *(error_of(code, "message", "detail") for code in ("", "session_busy", "session_mismatch", "store_failed", "invalid_tools")),
            error_of("run_failed", "", "rate_limited: x"),
            *(kind("message") for kind in (duologue.NotInstalled, duologue.VersionError, duologue.TooLong, duologue.Closed)),
        ]
        for error in errors:
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                with self.subTest(error):
                    self.assertEqual((type(again), str(again), again.__dict__), (type(error), str(error), error.__dict__))

    async def test_busy(self):
        async with real("--echo-delay-ms=60000") as chat:
            async for event in chat.stream("x"):
                with self.assertRaises(duologue.Busy):
                    await chat.run("y")
                break

    async def test_another_session(self):
        async with real() as chat:
            await chat.run("x")
            with self.assertRaises(duologue.SessionMismatch):
                await chat.request(sessionId="another", snapshot={})

    async def test_a_provider(self):
        with provider(429, {"retry-after": "90"}) as address:
            options = {"model": "m", "args": [f"--base-url={address}"], "env": {"OPENAI_API_KEY": "not-a-secret"}}
            async with Duologue(binary=BINARY, engine="openai", **options) as chat:
                with self.assertRaises(duologue.ProviderError) as caught:
                    await chat.run("x")
        error = caught.exception
        self.assertEqual((error.error_class, error.retry_after, error.is_retryable), ("rate_limited", 90.0, True))
        async with unreachable() as chat:
            with self.assertRaises(duologue.ProviderError) as caught:
                await chat.run("x")
        self.assertEqual((caught.exception.error_class, caught.exception.retry_after), ("network", None))

    async def test_tools(self):
        async with real() as chat:
            with self.assertRaises(duologue.ToolError):
                await chat.request(toolResult={"toolCallId": "unknown"})
            bad = duologue.Tool(print, "no name", "", {})
            with self.assertRaises(duologue.ToolError):
                await chat.set_tools([bad])

    async def test_a_store(self):
        with tempfile.TemporaryDirectory() as folder:
            place = {"store": folder + "/chat.db", "session": "ada"}
            async with real(**place):
                with self.assertRaises(duologue.StoreError) as caught:
                    await real(**place).start()
                self.assertEqual(caught.exception.code, "session_locked")

    async def test_a_command_line(self):
        # Many at once, so that some processes have ended before their first frame is read.
        starts = (real("--nonsense").start() for _ in range(STARTS_AT_ONCE))
        for error in await asyncio.gather(*starts, return_exceptions=True):
            self.assertIsInstance(error, duologue.ConfigError)
            self.assertIn("--nonsense", str(error))

    async def test_a_relative_path_to_the_program_and_another_folder(self):
        before, named = os.getcwd(), os.environ.get("DUOLOGUE_BIN")
        self.addCleanup(os.chdir, before)
        self.addCleanup(os.environ.update if named else os.environ.pop, *([{"DUOLOGUE_BIN": named}] if named else ["DUOLOGUE_BIN", None]))
        os.chdir(ROOT / "clients")
        os.environ["DUOLOGUE_BIN"] = "./difficult_server.py"
        for binary in ("./difficult_server.py", None):
            async with Duologue(binary=binary, cwd="/", env={"DIFFICULT": "normal"}) as chat:
                self.assertEqual((await chat.run("x")).status, "ok")

    async def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(duologue.DuologueError, "can't be run in /nowhere, which is no folder that can be used") as caught:
            await real(cwd="/nowhere").start()
        self.assertNotIsInstance(caught.exception, duologue.NotInstalled)

    async def test_not_installed(self):
        with self.assertRaisesRegex(duologue.NotInstalled, "the argument `binary`"):
            await Duologue(binary="/nowhere/duologue").start()
        path, named = os.environ["PATH"], os.environ.pop("DUOLOGUE_BIN", None)
        try:
            os.environ["PATH"] = "/nowhere"
            with self.assertRaisesRegex(duologue.NotInstalled, "not on the PATH"):
                await Duologue().start()
            os.environ["DUOLOGUE_BIN"] = "/nowhere/duologue"
            with self.assertRaisesRegex(duologue.NotInstalled, "DUOLOGUE_BIN"):
                await Duologue().start()
            os.environ["DUOLOGUE_BIN"] = BINARY
            await (await Duologue(engine="echo").start()).close()
        finally:
            os.environ["PATH"] = path
            os.environ.pop("DUOLOGUE_BIN", None)
            if named:
                os.environ["DUOLOGUE_BIN"] = named
