//! Valid and invalid lines from clients.

use super::*;

/// The id that a request without one gets here.
const FRESH: &str = "fresh";

fn fresh() -> RequestId {
    RequestId::new(FRESH).expect("a name")
}

/// The parsed line in a few words: command, session and id, or error and id.
fn read(line: &[u8]) -> String {
    match decode(line, fresh) {
        Ok(Request { session, id, command }) => {
            let session = session.as_ref().map_or("-", SessionId::as_str);
            let command = match command {
                Command::Submit(submit) => format!("submit {:?}", submit.prompt.into_string()),
                Command::Cancel(_) => "cancel".to_owned(),
                Command::Snapshot(_) => "snapshot".to_owned(),
                Command::Shutdown => "shutdown".to_owned(),
                Command::Enable(_) => "enable".to_owned(),
                Command::DeclareTools(_) => "declareTools".to_owned(),
                Command::ToolResult(_) => "toolResult".to_owned(),
                Command::Approve(_) => "approve".to_owned(),
                Command::SwitchModel(_) => "switchModel".to_owned(),
                Command::Edit(_) => "edit".to_owned(),
                Command::Compact(_) => "compact".to_owned(),
                Command::Rename(_) => "rename".to_owned(),
                Command::NoteApproval(_) => "approval".to_owned(),
            };
            format!("{command} in {session} as {}", id.as_str())
        }
        Err(bad) => refusal(&bad),
    }
}

fn refusal(bad: &BadLine) -> String {
    let id = bad.id.as_ref().map_or("-", RequestId::as_str);
    format!("{} as {id}", bad.fault.client_error().code.as_str())
}

fn check(cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        assert_eq!(read(line.as_bytes()), *expected, "{line}");
    }
}

#[test]
fn requests_are_read_in_both_name_styles() {
    check(&[
        (r#"{"submit":{"prompt":"hi"}}"#, r#"submit "hi" in - as fresh"#),
        (r#"{"requestId":"a","cancel":{}}"#, "cancel in - as a"),
        (r#"{"request_id":"a","session_id":"s","cancel":{}}"#, "cancel in s as a"),
        (r#"{"sessionId":"s","requestId":"a","snapshot":{}}"#, "snapshot in s as a"),
        (r#"{"shutdown":{},"requestId":"a"}"#, "shutdown in - as a"),
        (r#" { "cancel" : { } } "#, "cancel in - as fresh"),
        (r#"{"request\u0049d":"a","cancel":{}}"#, "cancel in - as a"),
        (r#"{"requestId":"a","cancel":{"new":[1,{"x":null}]},"newer":7}"#, "cancel in - as a"),
    ]);
}

#[test]
fn null_means_unset() {
    check(&[
        (
            r#"{"requestId":null,"sessionId":null,"version":null,"cancel":{}}"#,
            "cancel in - as fresh",
        ),
        (r#"{"submit":null,"cancel":{},"shutdown":null}"#, "cancel in - as fresh"),
        (r#"{"requestId":"a","cancel":null}"#, "unknown_request as a"),
        (r#"{"requestId":"a","submit":{"prompt":null}}"#, "empty_prompt as a"),
        (r#"{"requestId":null,"cancel":7}"#, "invalid_request_json as -"),
    ]);
}

#[test]
fn ids_are_trimmed_and_blank_ones_are_none() {
    check(&[
        (r#"{"requestId":" a b\t","sessionId":"\u00a0s\n","cancel":{}}"#, "cancel in s as a b"),
        (r#"{"requestId":"  ","sessionId":"\u2003","cancel":{}}"#, "cancel in - as fresh"),
        (r#"{"requestId":"","cancel":{}}"#, "cancel in - as fresh"),
    ]);
}

#[test]
fn prompts_are_kept_as_written_and_blank_ones_refused() {
    check(&[
        (r#"{"submit":{"prompt":" a\r\n\u0000 "}}"#, r#"submit " a\r\n\0 " in - as fresh"#),
        (r#"{"submit":{"prompt":"\ud83d\ude00"}}"#, "submit \"\u{1F600}\" in - as fresh"),
        (r#"{"requestId":"a","submit":{"prompt":""}}"#, "empty_prompt as a"),
        (r#"{"requestId":"a","submit":{}}"#, "empty_prompt as a"),
        (r#"{"requestId":"a","submit":{"prompt":" \t\u2003\n"}}"#, "empty_prompt as a"),
        (r#"{"submit":{"prompt":" "}}"#, "empty_prompt as fresh"),
    ]);
}

#[test]
fn versions_zero_and_one_are_spoken() {
    check(&[
        (r#"{"version":0,"cancel":{}}"#, "cancel in - as fresh"),
        (r#"{"version":1,"cancel":{}}"#, "cancel in - as fresh"),
        (r#"{"version":"1","cancel":{}}"#, "cancel in - as fresh"),
        (r#"{"version":1.0,"cancel":{}}"#, "cancel in - as fresh"),
        (r#"{"version":1e0,"cancel":{}}"#, "cancel in - as fresh"),
        (r#"{"requestId":"a","version":2,"cancel":{}}"#, "unsupported_version as a"),
        (r#"{"requestId":"a","version":4294967295}"#, "unsupported_version as a"),
        (r#"{"version":99,"submit":{"prompt":""}}"#, "unsupported_version as fresh"),
        (r#"{"requestId":"a","version":-1,"cancel":{}}"#, "invalid_request_json as a"),
        (r#"{"requestId":"a","version":1.5,"cancel":{}}"#, "invalid_request_json as a"),
        (r#"{"requestId":"a","version":4294967296,"cancel":{}}"#, "invalid_request_json as a"),
    ]);
}

#[test]
fn a_line_that_asks_for_nothing_has_a_name() {
    check(&[
        ("{}", "unknown_request as fresh"),
        (r#"{"requestId":"a"}"#, "unknown_request as a"),
        (r#"{"requestId":"a","submitt":{"prompt":"hi"}}"#, "unknown_request as a"),
    ]);
}

#[test]
fn a_malformed_line_is_named_if_it_is_an_object_with_a_name() {
    check(&[
        (r#"{"requestId":"a","submit":7}"#, "invalid_request_json as a"),
        (r#"{"submit":7,"requestId":" a "}"#, "invalid_request_json as a"),
        (r#"{"submit":[{}],"request_id":"a"}"#, "invalid_request_json as a"),
        (r#"{"requestId":"a","submit":{"prompt":7}}"#, "invalid_request_json as a"),
        (r#"{"requestId":"a","cancel":{},"snapshot":{}}"#, "invalid_request_json as a"),
        (r#"{"requestId":"a","cancel":{},"cancel":{}}"#, "invalid_request_json as a"),
        (r#"{"sessionId":7,"requestId":"a"}"#, "invalid_request_json as a"),
        (r#"{"x":{"y":1,"y":2},"requestId":"a","cancel":{}}"#, "invalid_request_json as a"),
        (r#"{"x":"\ud800","requestId":"a","cancel":{}}"#, "invalid_request_json as a"),
        (r#"{"submit":{"requestId":"a"},"cancel":7}"#, "invalid_request_json as -"),
        (r#"{"x":{"requestId":"a"},"cancel":7}"#, "invalid_request_json as -"),
        (r#"{"requestId":"  ","cancel":7}"#, "invalid_request_json as -"),
        (r#"{"requestId":7,"cancel":{}}"#, "invalid_request_json as -"),
        (r#"{"requestId":["a"],"cancel":{}}"#, "invalid_request_json as -"),
        (r#"{"requestId":{"requestId":"a"},"cancel":{}}"#, "invalid_request_json as -"),
        (r#"{"requestId":true,"cancel":{}}"#, "invalid_request_json as -"),
        (r#"{"requestId":"a","submit":{"prompt":"hi"}"#, "invalid_request_json as -"),
        (r#"{"requestId":"a","cancel":{}} x"#, "invalid_request_json as -"),
        (r#"{"requestId":"a","cancel":{}}{}"#, "invalid_request_json as -"),
        (r#"[{"requestId":"a","cancel":{}}]"#, "invalid_request_json as -"),
        (r#""requestId""#, "invalid_request_json as -"),
        ("{", "invalid_request_json as -"),
        ("[]", "invalid_request_json as -"),
        ("null", "invalid_request_json as -"),
        ("hello", "invalid_request_json as -"),
        (r#"{"requestId":"a","submit":{"prompt":"\ud800"}}"#, "invalid_request_json as a"),
    ]);
}

#[test]
fn bytes_that_are_no_text_are_malformed() {
    assert_eq!(read(b"{\"requestId\":\"a\",\"cancel\":{\xff}}"), "invalid_request_json as -");
    let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read(&utf16), "invalid_request_json as -");
}

#[test]
fn depth_overflows_nothing() {
    let deep = "[".repeat(100_000);
    for line in [
        deep.clone(),
        format!(r#"{{"requestId":{deep}"#),
        format!(r#"{{"requestId":"a","submit":{deep}"#),
        format!(r#"{{"requestId":"a","x":{deep}{}}}"#, "]".repeat(100_000)),
        r#"{"submit":"#.repeat(100_000),
    ] {
        drop(decode(line.as_bytes(), fresh));
        drop(too_long(line.as_bytes(), line.as_bytes(), 1));
    }
}

#[test]
fn a_name_is_made_only_where_there_is_none() {
    let named = br#"{"requestId":"a","cancel":{}}"#;
    let read = decode(named, || panic!("a name was made"));
    assert_eq!(read.map(|request| request.id.as_str().to_owned()), Ok("a".to_owned()));
}

#[test]
fn a_line_that_is_too_long_is_named_by_its_start_or_its_end() {
    for (start, expected) in [
        (r#"{"requestId":"a","submit":{"prompt":"hhh"#, "a"),
        (r#"{"version":1,"session_id":"s","request_id":" a ","submit":{"#, "a"),
        (r#"{"requestId":"a""#, "a"),
        (r#"{"submit":{"prompt":"hi"},"requestId":"a","x":[1,"#, "a"),
        (r#"{"requestId":"a"#, "-"),
        (r#"{"submit":{"requestId":"a","prompt":"hhh"#, "-"),
        (r#"{"submit":{"prompt":"\"requestId\":\"a\""#, "-"),
        (r#"{"requestId":7,"submit":{"#, "-"),
        (r#"["requestId","a""#, "-"),
        ("", "-"),
    ] {
        let bad = too_long(start.as_bytes(), b"", 99);
        assert_eq!(refusal(&bad), format!("line_too_long as {expected}"), "{start}");
        assert_eq!(bad.fault, RequestFault::TooLong { bytes_max: 99 });
    }
    let cut_in_a_character = b"{\"requestId\":\"a\",\"submit\":{\"prompt\":\"\xf0\x9f";
    assert_eq!(refusal(&too_long(cut_in_a_character, b"", 99)), "line_too_long as a");
    for (end, expected) in [
        (r#"hhh"},"requestId":"b"}"#, "b"),
        (r#"hh","x":[1,2]},"sessionId":"s","request_id":"b","version":1}"#, "b"),
        (r#"hhh","requestId":"b"}}"#, "-"),
        (r#"hhh,\"requestId\":\"b\"}"}"#, "-"),
        (r#"hhh"},"requestId":"b"#, "-"),
    ] {
        let bad = too_long(br#"{"submit":{"prompt":"hhh"#, end.as_bytes(), 99);
        assert_eq!(refusal(&bad), format!("line_too_long as {expected}"), "{end}");
    }
    let both = too_long(br#"{"requestId":"a","submit":{"#, br#"},"requestId":"b"}"#, 99);
    assert_eq!(refusal(&both), "line_too_long as a");
}

#[test]
fn a_line_whose_reading_fails_keeps_its_name() {
    let bad = unreadable(br#"{"requestId":"a","cancel":{}}"#, "panicked".to_owned());
    assert_eq!(refusal(&bad), "internal as a");
    assert_eq!(bad.fault.client_error().detail, "panicked");
}

#[test]
fn a_line_with_more_small_values_than_are_read_is_not_called_malformed() {
    let rows = r#"{"id":1,"tags":["x","y"]},"#.repeat(90_000);
    let result = format!(r#"{{"toolCallId":"c","result":{{"rows":[{rows}{{}}]}}}}"#);
    let line = format!(r#"{{"requestId":"a","toolResult":{result}}}"#);
    let bad = decode(line.as_bytes(), fresh).expect_err("too many values");
    assert_eq!(refusal(&bad), "invalid_request_json as a");
    let message = bad.fault.client_error().message;
    assert!(message.contains("more small values than are read"), "{message}");
    assert!(message.contains("as a string of JSON"), "{message}");
}

#[test]
fn a_refused_line_does_not_end_the_process() {
    for fault in [
        RequestFault::InvalidJson { reason: String::new() },
        RequestFault::TooManyValues { memory_mib_max: 1 },
        RequestFault::TooLong { bytes_max: 1 },
        RequestFault::UnsupportedVersion(2),
        RequestFault::UnknownRequest,
        RequestFault::Unhandled,
        RequestFault::NotBegun(Box::new(ClientError {
            code: Code::StoreFailed,
            message: "m".to_owned(),
            detail: String::new(),
            terminal: true,
        })),
        RequestFault::Command(CommandFault::EmptyPrompt),
        RequestFault::Internal { detail: String::new() },
    ] {
        let client_error = fault.client_error();
        assert!(!client_error.terminal && !client_error.message.is_empty(), "{fault:?}");
    }
}

#[test]
fn frames_carry_version_session_and_request() {
    let session = SessionId::new("s").expect("a name");
    let named = frame(&session, RequestId::new("a").as_ref(), done(Done::Stopped));
    assert_eq!(
        (named.version, named.session_id.as_str(), named.request_id.as_str()),
        (1, "s", "a")
    );
    assert_eq!(named.frame, Some(Body::Done(DoneFrame { status: "stopped".to_owned() })));
    assert_eq!(frame(&session, None, done(Done::Ok)).request_id, "");
}
