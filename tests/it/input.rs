//! Input as nobody should write it.

use crate::frames::{Frame, cancel, ends, errors, finished_text, patched_text, snapshot, submit};
use crate::process::DEADLINE;
use crate::provider::{Provider, Step};
use crate::server::{Reading, Server, echo, openai};
use serde_json::json;
use std::io::Write;
use std::time::Instant;

/// A line of this length is accepted, unless an option says otherwise.
const REQUEST_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Bytes of a line that never ends.
const ENDLESS_BYTES: usize = 1024 * 1024 * 1024;

/// Memory that a server may take while it reads what it does not keep.
const MEMORY_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// All that readers take for the end of a line, and what JSON escapes.
const ODD_TEXT: &str = "a\u{2028}b \u{2029}c\u{85} d\0e \rf \u{b}g \u{c}h \u{1f}i\u{7f} \u{1F600}\
                        \u{1F468}\u{200D}\u{1F469} \u{FEFF}\u{FFFD}\u{10FFFF} \"\\/\u{8}\t\n end";

/// Requests without a pause are answered, and the run continues meanwhile.
#[test]
fn a_flood_of_requests_does_not_stop_a_run() {
    const SNAPSHOTS: usize = 2_000;
    let mut server = echo(&["--final-snapshot", "none"]).start();
    let flood = (0..SNAPSHOTS).map(|number| snapshot(&format!("s{number}")));
    let lines: Vec<_> = [submit("r", "some words")].into_iter().chain(flood).collect();
    server.send_together(&lines);
    let frames = server.finish().frames;
    let first_patch = frames.iter().position(|frame| frame.is_event("ChatTextPatch"));
    let last = format!("s{}", SNAPSHOTS - 1);
    let last_answer = frames.iter().position(|frame| frame.ends(&last));
    assert!(first_patch.expect("a patch") < last_answer.expect("an answer"));
}

#[test]
fn a_line_one_byte_over_the_limit_costs_itself_alone() {
    let mut server = Server::start(&["--max-request-bytes", "1000"]);
    server.send(line_of("fits", 1000));
    assert_eq!(server.wait_done("fits"), "ok");
    server.send(line_of("over", 1001));
    assert_eq!(server.wait_done("over"), "failed");
    server.send(snapshot("next"));
    assert_eq!(server.wait_done("next"), "ok");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "over"), ["line_too_long"]);
    assert!(hello_has(&frames, "max-request-bytes=1000"));
}

/// A reader that asks again as soon as it is answered does not hold up the run.
#[test]
fn a_run_goes_on_under_a_flood_of_snapshots() {
    const IN_FLIGHT: usize = 8;
    let mut server = Server::start(&["--echo-delay-ms", "1", "--final-snapshot", "none"]);
    server.send(submit("r", &"word ".repeat(100)));
    let started = Instant::now();
    let mut asked = 0;
    while asked < IN_FLIGHT || !server.wait("any done", |frame| frame.done().is_some()).ends("r") {
        server.send(snapshot(&format!("s{asked}")));
        asked += 1;
        assert!(started.elapsed() < DEADLINE, "the run goes on after {asked} snapshots");
    }
    let frames = server.finish().frames;
    assert!(asked > IN_FLIGHT && ends(&frames).contains(&("r".to_owned(), "ok".to_owned())));
}

/// A line of exactly the default limit, then one that is a byte longer.
#[test]
fn ten_mebibytes_are_read_and_one_byte_more_is_not() {
    let mut server = Server::start(&[]);
    let (fits, over) = (line_of("fits", REQUEST_BYTES_MAX), line_of("over", REQUEST_BYTES_MAX + 1));
    server.feed(3, move |stdin| {
        for line in [fits, over, snapshot("next")] {
            writeln!(stdin, "{line}")?;
        }
        Ok(())
    });
    assert_eq!(server.wait_done("next"), "ok");
    let frames = server.finish().frames;
    let expected = [("fits", "ok"), ("over", "failed"), ("next", "ok")];
    assert_eq!(ends(&frames), expected.map(|(id, how)| (id.to_owned(), how.to_owned())));
    assert!(hello_has(&frames, &format!("max-request-bytes={REQUEST_BYTES_MAX}")));
}

/// A gibibyte without a line feed.
#[test]
fn a_line_without_end_is_read_in_bounded_memory() {
    let mut server = Server::start(&["--echo-delay-ms", "100"]);
    server.feed(3, |stdin| {
        let block = vec![b'x'; 1024 * 1024];
        for _ in 0..ENDLESS_BYTES / block.len() {
            stdin.write_all(&block)?;
        }
        writeln!(stdin, "\n{}\n{}", snapshot("next"), submit("hold", "hello"))
    });
    assert_eq!(server.wait("any done", |frame| frame.done().is_some()).id(), "");
    assert_eq!(server.wait_done("next"), "ok");
    // The last run goes on for long enough to look at the process.
    server.wait_event("ChatRunStarted");
    let peak_bytes = server.process().peak_memory_bytes();
    assert!(peak_bytes < MEMORY_BYTES_MAX, "{peak_bytes}");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, ""), ["line_too_long"]);
}

#[test]
fn input_that_comes_byte_by_byte_is_handled_once_while_output_streams() {
    let mut server = Server::start(&["--final-snapshot", "none"]);
    server.send(submit("flood", &"word ".repeat(20_000)));
    server.wait_event("ChatTextPatch");
    for number in 0..20 {
        let line = json!({ "requestId": format!("\u{e9}\u{1F600}-{number}"), "snapshot": {} });
        for byte in format!("{line}\n").bytes() {
            server.send_raw(&[byte]);
        }
    }
    let frames = server.finish().frames;
    assert_eq!(ends(&frames).len(), 21);
    for number in 0..20 {
        let id = format!("\u{e9}\u{1F600}-{number}");
        assert_eq!(frames.iter().filter(|frame| frame.id() == id).count(), 2, "{id}");
    }
    assert_eq!(patched_text(&frames, "flood"), finished_text(&frames, "flood"));
}

/// A submit whose characters are cut between two writes.
#[test]
fn characters_may_be_cut_between_two_writes() {
    let mut server = Server::start(&[]);
    let text = "gr\u{fc}\u{df}e \u{4f60}\u{597d} \u{1F600}";
    for byte in format!("{}\n", submit("r", text)).bytes() {
        server.send_raw(&[byte]);
    }
    assert_eq!(server.wait_done("r"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r"), format!("Turn 1. You said: {text}"));
}

#[test]
fn odd_text_comes_back_as_it_was() {
    for args in [&[][..], &["--patch-mode", "snapshot"], &["--echo-reasoning"]] {
        let mut server = Server::start(args);
        assert_eq!(server.turn("r", ODD_TEXT), "ok");
        server.send(snapshot("s"));
        let shown =
            server.wait("the snapshot of s", |frame| frame.id() == "s" && frame.is_snapshot());
        let frames = server.finish().frames;
        let answer = format!("Turn 1. You said: {ODD_TEXT}");
        assert_eq!(finished_text(&frames, "r"), answer);
        let accepted = frames.iter().find(|frame| frame.is_event("ChatUserMessageAccepted"));
        assert_eq!(accepted.expect("accepted").payload("text"), ODD_TEXT);
        assert!(shown.messages().contains(&("user", ODD_TEXT)));
        assert!(shown.messages().contains(&("assistant", answer.as_str())));
        if !args.contains(&"snapshot") {
            assert_eq!(patched_text(&frames, "r"), answer);
        }
    }
}

/// A provider may cut a character between its bytes, and between its surrogates.
#[test]
fn characters_may_be_cut_between_two_deltas() {
    let delta = |content: &str| {
        Step::Event(format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{content}"}}}}]}}"#))
    };
    let event = r#"data: {"choices":[{"index":0,"delta":{"content":"é\u2028€"}}]}"#;
    let bytes = event.as_bytes().iter().map(|&byte| Step::Bytes(vec![byte]));
    let mut script = vec![delta(r"a\ud83d"), delta(r"\ude00b")];
    script.extend(bytes);
    script.extend([Step::Bytes(b"\n\n".to_vec()), Step::Finish("stop", None), Step::Done]);
    let provider = Provider::start(vec![script]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("r", "hello"), "ok");
    let frames = server.finish().frames;
    let answer = "a\u{1F600}b\u{e9}\u{2028}\u{20ac}";
    assert_eq!(patched_text(&frames, "r"), answer);
    assert_eq!(finished_text(&frames, "r"), answer);
}

#[test]
fn a_bom_crlf_blank_lines_and_a_missing_last_line_end_are_no_mistakes() {
    let mut server = Server::start(&[]);
    server.send_raw("\u{FEFF}".as_bytes());
    server.send_raw(format!("{}\r\n", snapshot("bom")).as_bytes());
    server.send_raw(b"\n\r\n \t \n");
    server.send_raw(format!(" {} \r\n{}", snapshot("spaces"), snapshot("last")).as_bytes());
    let frames = server.finish().frames;
    let expected = ["bom", "spaces", "last"].map(|id| (id.to_owned(), "ok".to_owned()));
    assert_eq!(ends(&frames), expected);
}

/// Each kind of bad line, with the request id that the error names.
#[test]
fn a_bad_line_is_answered_once_and_costs_itself_alone() {
    let utf16: Vec<u8> = snapshot("u16").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let deep =
        format!(r#"{{"requestId":"deep","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let invalid = "invalid_request_json";
    let lines: &[(&[u8], &str, Option<&str>)] = &[
        (b"{\"requestId\":\"utf8\xff\",\"snapshot\":{}}", invalid, Some("")),
        (&utf16, invalid, Some("")),
        (b"{", invalid, Some("")),
        (b"[]", invalid, Some("")),
        (b"null", invalid, Some("")),
        (b"\"text\"", invalid, Some("")),
        (b"17", invalid, Some("")),
        (b"{}", "unknown_request", None),
        (br#"{"requestId":"none"}"#, "unknown_request", Some("none")),
        (br#"{"requestId":"other","dance":{}}"#, "unknown_request", Some("other")),
        (br#"{"requestId":"type","submit":"hello"}"#, invalid, Some("type")),
        (br#"{"submit":{"prompt":5},"requestId":"number"}"#, invalid, Some("number")),
        (br#"{"requestId":5,"snapshot":{}}"#, invalid, Some("")),
        (br#"{"requestId":"two","cancel":{},"snapshot":{}}"#, invalid, Some("two")),
        (br#"{"requestId":"twice","snapshot":{},"snapshot":{}}"#, invalid, Some("twice")),
        (br#"{"requestId":"after","snapshot":{}} x"#, invalid, Some("")),
        (br#"{"requestId":"half","submit":{"prompt":"\ud800"}}"#, invalid, None),
        (br#"{"requestId":"v","version":99,"snapshot":{}}"#, "unsupported_version", Some("v")),
        (br#"{"requestId":"minus","version":-1,"snapshot":{}}"#, invalid, Some("minus")),
        (br#"{"requestId":"blank","submit":{}}"#, "empty_prompt", Some("blank")),
        (deep.as_bytes(), invalid, Some("deep")),
    ];
    let mut server = Server::start(&[]);
    for (line, code, id) in lines {
        server.send_raw(&[line, b"\n".as_slice()].concat());
        let error = server.wait("any error", |frame| frame.error().is_some());
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
        assert_eq!(error.error(), Some(*code), "{shown}");
        assert!(id.is_none_or(|id| error.id() == id), "{shown}: id {:?}", error.id());
        let done = server.wait("any done", |frame| frame.done().is_some());
        assert_eq!((done.id(), done.done()), (error.id(), Some("failed")), "{shown}");
    }
    assert_eq!(server.turn("r", "hello"), "ok");
    let frames = server.finish().frames;
    assert_eq!(frames.iter().filter(|frame| frame.error().is_some()).count(), lines.len());
}

/// What is sent and not read by anyone does not pile up either: more requests than may wait.
#[test]
fn requests_without_a_reader_of_their_answers_are_left_unread_and_answered_later() {
    const REQUESTS: usize = 5_000;
    let mut server = echo(&[]).stdout(Reading::Held).pipe_bytes(4096).start();
    server.feed(REQUESTS, |stdin| {
        (0..REQUESTS).try_for_each(|number| writeln!(stdin, "{}", cancel(&number.to_string())))
    });
    let process = server.process();
    crate::process::settled("memory is flat", || process.memory_bytes());
    assert!(process.peak_memory_bytes() < MEMORY_BYTES_MAX);
    server.read_on(Reading::Eager);
    let frames = server.finish().frames;
    assert_eq!(ends(&frames).len(), REQUESTS);
}

/// A `snapshot` request with this id, filled up to `bytes` by a field that is ignored.
fn line_of(id: &str, bytes: usize) -> String {
    let start = format!(r#"{{"requestId":"{id}","snapshot":{{}},"x":""#);
    let fill = "x".repeat(bytes - start.len() - 2);
    format!("{start}{fill}\"}}")
}

fn hello_has(frames: &[Frame], capability: &str) -> bool {
    let capabilities = frames[0].0["hello"]["capabilities"].as_array().expect("capabilities");
    capabilities.iter().any(|word| word == capability)
}

/// An id that is too long is repeated on no frame.
#[test]
fn an_id_that_is_too_long_costs_its_line() {
    let (long, longest) = ("x".repeat(1025), "y".repeat(1024));
    let mut server = Server::start(&[]);
    server.send(submit(&long, "hello"));
    let error = server.wait("an error", |frame| frame.error().is_some());
    assert_eq!((error.error(), error.id()), (Some("invalid_request_json"), ""));
    assert!(error.text("/error/message").contains("requestId is longer than 1024 bytes"));
    assert_eq!(server.wait_done(""), "failed");
    server.send(format!(r#"{{"requestId":"{long}","submit":{{"prompt":7}}}}"#));
    assert_eq!(server.wait_done(""), "failed");
    server.send(format!(r#"{{"requestId":"s","sessionId":"{long}","snapshot":{{}}}}"#));
    let error = server.wait("an error", |frame| frame.error().is_some());
    assert_eq!((error.error(), error.id()), (Some("invalid_request_json"), "s"));
    assert!(error.text("/error/message").contains("sessionId is longer than 1024 bytes"));
    assert_eq!(server.wait_done("s"), "failed");
    assert_eq!(server.turn(&longest, "hello"), "ok");
    let frames = server.finish().frames;
    assert!(frames.iter().all(|frame| !frame.0.to_string().contains(&long)));
}
