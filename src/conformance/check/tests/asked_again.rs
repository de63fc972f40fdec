//! A run with everything that extensions report of provider calls, and violations planted in it.

use super::sample::{
    PROMPT, STDIN, Stream, accepted, done, ended, event, foreign, hello, ids_of, merged, prompt_of,
    run, segment_entity, started, state,
};
use super::*;
use serde_json::json;

const PROVIDER: &str = "duologue.provider";

/// The indices of its frames.
const SWITCHED: usize = 1;
const ACCEPTED: usize = 3;
const SCHEDULED: usize = 6;
const RETRIED: usize = 7;
const COUNTED: usize = 11;
const REJECTED: usize = 12;
const SECOND_CALL: usize = 13;
const CUT_OFF: usize = 16;
const TRUNCATED: usize = 17;
const COUNTED_AGAIN: usize = 18;
const FINISHED: usize = 19;
const SNAPSHOT: usize = 20;

fn attachments() -> Value {
    json!([
        { "attachmentId": "attachment-1", "kind": "image", "url": "https://example.com/a.png" },
        { "attachmentId": "attachment-2", "kind": "file", "filename": "b.txt", "sizeBytes": "2" },
    ])
}

fn segment(call: u64, more: Value) -> Value {
    let segment = format!("segment-{call}");
    let payload = json!({
        "messageId": format!("chat-msg-1:text:{segment}"), "role": "assistant", "prompt": PROMPT,
    });
    merged(merged(payload, ids_of(call, json!({ "segmentId": segment }))), more)
}

fn counts(calls: u64, (input, output): (u64, u64), cost: &str) -> Value {
    json!({
        "providerCalls": calls, "inputTokens": input.to_string(),
        "outputTokens": output.to_string(), "cost": cost, "currency": "EUR",
    })
}

fn ours(ordinal: u64, (package, name): (&str, &str), call: u64, payload: Value) -> Value {
    foreign("r", ordinal, (package, name), merged(payload, ids_of(call, json!({}))))
}

fn of_call(ordinal: u64, name: &str, call: u64, payload: Value) -> Value {
    event("r", ordinal, name, merged(payload, ids_of(call, json!({}))))
}

/// The text segment of a call.
fn text(ordinal: u64, call: u64, reason: &str) -> [Value; 2] {
    let begun = segment(call, json!({ "status": "streaming", "streaming": true }));
    let more = json!({ "status": "finished", "final": true, "finishReason": reason });
    [
        event("r", ordinal, "ChatTextSegmentStarted", begun),
        event("r", ordinal + 1, "ChatTextSegmentFinished", segment(call, more)),
    ]
}

fn call_finished(
    ordinal: u64,
    call: u64,
    (class, reason): (&str, &str),
    (input, output): (u64, u64),
) -> Value {
    let usage = json!({ "inputTokens": input, "outputTokens": output });
    let payload = json!({ "finishClass": class, "stopReason": reason, "usage": usage });
    of_call(ordinal, "ChatProviderCallFinished", call, payload)
}

fn totals(ordinal: u64, call: u64, of_call: Value, sum: &Value) -> Value {
    let payload = json!({ "call": of_call, "run": sum, "session": sum });
    ours(ordinal, ("duologue.session", "UsageTotals"), call, payload)
}

/// A switch of the model, then a run: a prompt with attachments, a retry, an answer that is rejected,
/// and another one that is cut off.
pub(super) fn asked_again() -> Stream {
    let cut = json!({ "error": "the answer was cut off: length" });
    let switched = json!({ "engine": "gemini", "model": "flash" });
    let mut frames = vec![
        hello(&[&STDIN[..], &["retries", "usage"]].concat()),
        foreign("m", 1, (PROVIDER, "ModelSwitched"), switched),
        done("m", "ok"),
    ];
    frames.extend(rejected_answer());
    frames.extend(answer_cut_off());
    frames.extend([
        event("r", 18, "ChatRunFinished", merged(ended(1, "finished"), cut.clone())),
        state("r", 18, entities(cut)),
        done("r", "ok"),
        done("q", "shutdown"),
    ]);
    Stream(frames)
}

fn rejected_answer() -> Vec<Value> {
    let prompt = merged(accepted(1), json!({ "attachments": attachments() }));
    let scheduled = json!({
        "attempt": 2, "attemptsMax": 3, "waitMs": "500", "errorClass": "rate_limited",
        "reason": "too many requests",
    });
    let first = counts(1, (10, 5), "0.100000");
    let rejected = json!({
        "messageId": "chat-msg-1", "reason": "not JSON", "repair": 1, "repairsMax": 2,
        "correlation": super::sample::ids(1, &[]),
    });
    let mut frames = vec![
        event("r", 2, "ChatUserMessageAccepted", prompt),
        event("r", 3, "ChatRunStarted", started(1)),
        of_call(4, "ChatProviderCallStarted", 1, json!({})),
        ours(5, (PROVIDER, "RetryScheduled"), 1, scheduled),
        ours(6, (PROVIDER, "RetryStarted"), 1, json!({ "attempt": 2, "attemptsMax": 3 })),
    ];
    frames.extend(text(7, 1, "stop"));
    frames.extend([
        call_finished(9, 1, ("completed", "stop"), (10, 5)),
        totals(10, 1, first.clone(), &first),
        foreign("r", 11, ("duologue.extract", "AnswerRejected"), rejected),
    ]);
    frames
}

fn answer_cut_off() -> Vec<Value> {
    let truncated =
        json!({ "messageId": "chat-msg-1", "stopReason": "length", "finishClass": "max_tokens" });
    let sum = counts(2, (30, 11), "0.350001");
    let mut frames = vec![of_call(12, "ChatProviderCallStarted", 2, json!({}))];
    frames.extend(text(13, 2, "length"));
    frames.extend([
        call_finished(15, 2, ("max_tokens", "length"), (20, 6)),
        ours(16, (PROVIDER, "AnswerTruncated"), 2, truncated),
        totals(17, 2, counts(1, (20, 6), "0.250000"), &sum),
    ]);
    frames
}

fn entities(cut: Value) -> Vec<Value> {
    let mut prompt = prompt_of(1, 2);
    prompt["payload"]["attachments"] = attachments();
    let text = |call: u64, ordinals: (u64, u64), more: Value| {
        let whole = json!({
            "status": "finished", "final": true, "parentMessageId": "chat-msg-1", "segment": call,
            "segmentType": "text",
        });
        segment_entity(call, ordinals, segment(call, merged(whole, more)))
    };
    vec![prompt, text(1, (7, 8), json!({})), text(2, (13, 14), cut)]
}

/// Violations in what extensions report, each in the line of the frame that is named.
pub(super) fn planted() -> Vec<(Stream, u64, Rule)> {
    let plain = hello(&STDIN);
    let mut unannounced = asked_again();
    unannounced.0.splice(..3, [plain]);
    let mut without_repair = asked_again();
    without_repair.0.drain(SECOND_CALL..FINISHED);
    let mut planted = vec![
        (unannounced, 5, Rule::UnannouncedExtension),
        (switched_in_a_run(), RETRIED as u64 + 1, Rule::EventOrder),
        (without_repair, SECOND_CALL as u64 + 1, Rule::EventOrder),
        (run().with(15, "/uiEvent/payload/error", json!("cut off")), 16, Rule::CutOff),
        (timed(json!({ "firstByteMs": "21", "firstTokenMs": "20" })), 12, Rule::CallTiming),
        (timed(json!({ "firstByteMs": "20" })), 12, Rule::CallTiming),
        (timed(json!({ "firstTokenMs": "20" })), FINISHED as u64 + 2, Rule::EventOrder),
    ];
    planted.extend(changed_fields().map(|(at, field, value, rule)| {
        (asked_again().with(at, field, value), at as u64 + 1, rule)
    }));
    // A frame is left out: the violation shows at another one.
    planted.extend(
        [
            (SCHEDULED, RETRIED),
            (RETRIED, RETRIED + 1),
            (COUNTED, REJECTED),
            (TRUNCATED, FINISHED),
            (COUNTED_AGAIN, FINISHED),
        ]
        .map(|(at, shows)| (asked_again().without(at), shows as u64, Rule::EventOrder)),
    );
    // A frame comes again, or elsewhere.
    let frames = asked_again().0;
    planted.extend(
        [
            (SCHEDULED, RETRIED),
            (SCHEDULED, REJECTED),
            (SCHEDULED, RETRIED + 2),
            (COUNTED, REJECTED),
            (COUNTED, SECOND_CALL + 1),
            (TRUNCATED, COUNTED_AGAIN),
            (TRUNCATED, REJECTED),
            (REJECTED, SECOND_CALL + 1),
            (REJECTED, FINISHED),
        ]
        .map(|(of, at)| {
            let rule =
                if (of, at) == (TRUNCATED, REJECTED) { Rule::CutOff } else { Rule::EventOrder };
            (asked_again().inserted(at, frames[of].clone()), at as u64 + 1, rule)
        }),
    );
    planted
}

fn switched_in_a_run() -> Stream {
    let mut switched = asked_again().0[SWITCHED].clone();
    switched["requestId"] = "n".into();
    asked_again().inserted(RETRIED, switched)
}

/// Fields with a wrong value: the frame, the field, the value and the rule.
fn changed_fields() -> impl Iterator<Item = (usize, &'static str, Value, Rule)> {
    [
        (SWITCHED, "/uiEvent/payload/engine", json!(""), Rule::MissingField),
        (ACCEPTED, "/uiEvent/payload/attachments/0/kind", json!(""), Rule::MissingField),
        (
            ACCEPTED,
            "/uiEvent/payload/attachments/1/attachmentId",
            json!("attachment-1"),
            Rule::Attachments,
        ),
        (SNAPSHOT, "/snapshot/entities/0/payload/attachments", json!([]), Rule::Attachments),
        (SCHEDULED, "/uiEvent/payload/attempt", json!(3), Rule::AttemptNumber),
        (SCHEDULED, "/uiEvent/payload/attemptsMax", json!(1), Rule::AttemptNumber),
        (SCHEDULED, "/uiEvent/payload/errorClass", json!("bad_luck"), Rule::ErrorClass),
        (RETRIED, "/uiEvent/payload/attempt", json!(3), Rule::AttemptNumber),
        (RETRIED, "/uiEvent/payload/attemptsMax", json!(4), Rule::AttemptNumber),
        (COUNTED, "/uiEvent/payload/session", json!(null), Rule::MissingField),
        (COUNTED, "/uiEvent/payload/call/cost", json!(""), Rule::MissingField),
        (COUNTED, "/uiEvent/payload/call/cost", json!("-1"), Rule::WrongValue),
        (COUNTED, "/uiEvent/payload/run/cost", json!("0.2"), Rule::TokenCounts),
        (COUNTED, "/uiEvent/payload/call/inputTokens", json!("11"), Rule::TokenCounts),
        (COUNTED, "/uiEvent/payload/call/reasoningTokens", json!("1"), Rule::TokenCounts),
        (COUNTED, "/uiEvent/payload/session/providerCalls", json!(2), Rule::TokenCounts),
        (COUNTED_AGAIN, "/uiEvent/payload/run/inputTokens", json!("20"), Rule::TokenCounts),
        (COUNTED_AGAIN, "/uiEvent/payload/session/outputTokens", json!("17"), Rule::TokenCounts),
        (COUNTED_AGAIN, "/uiEvent/payload/session/currency", json!("USD"), Rule::FieldChanged),
        (REJECTED, "/uiEvent/payload/repair", json!(2), Rule::AttemptNumber),
        (REJECTED, "/uiEvent/payload/repairsMax", json!(0), Rule::AttemptNumber),
        (TRUNCATED, "/uiEvent/payload/stopReason", json!("max_tokens"), Rule::FieldChanged),
        (TRUNCATED, "/uiEvent/payload/finishClass", json!("content_filter"), Rule::FieldChanged),
        (FINISHED, "/uiEvent/payload/error", json!(""), Rule::CutOff),
        (SNAPSHOT, "/snapshot/entities/2/payload/error", json!(""), Rule::CutOff),
        (SNAPSHOT, "/snapshot/entities/1/payload/error", json!("cut off"), Rule::CutOff),
    ]
    .into_iter()
}

/// The class of the call decides, not what is reported of it.
#[test]
fn a_call_that_was_not_cut_off_has_no_error() {
    let stream = asked_again().with(CUT_OFF, "/uiEvent/payload/finishClass", json!("completed"));
    let found: BTreeSet<_> = stream.check().into_iter().collect();
    let expected = [TRUNCATED, FINISHED, SNAPSHOT].map(|at| (at as u64 + 1, Rule::CutOff));
    assert!(found.is_superset(&expected.into()), "{found:?}");
}

/// Extensions may be turned on in the middle of a session, and of a call.
#[test]
fn reports_may_begin_late() {
    let late = |removed: &[usize]| {
        let mut stream = asked_again();
        stream.0[0] = hello(&STDIN);
        for at in removed.iter().rev() {
            stream.0.remove(*at);
        }
        stream.check()
    };
    assert_eq!(late(&[]), []);
    assert_eq!(late(&[SCHEDULED]), []);
    assert_eq!(late(&[COUNTED]), []);
    assert_eq!(late(&[SCHEDULED, RETRIED, COUNTED, TRUNCATED, COUNTED_AGAIN]), []);
    assert_ne!(late(&[COUNTED_AGAIN]), []);
    assert_ne!(late(&[TRUNCATED]), []);
}

/// Each cost is rounded, so that their sum may differ in the last digit.
#[test]
fn costs_add_up_but_for_rounding() {
    let cost = |cost: &str| {
        asked_again().with(COUNTED_AGAIN, "/uiEvent/payload/run/cost", json!(cost)).check()
    };
    for right in ["0.35", "0.350000", "0.349999", "0.350002", "0.3500001"] {
        assert_eq!(cost(right), [], "{right}");
    }
    for wrong in ["0.350003", "0.36", "1e-1", ".35", "0,35"] {
        assert_ne!(cost(wrong), [], "{wrong}");
    }
}

/// The stream with the times of its first call, and then none of its second.
fn timed(times: Value) -> Stream {
    asked_again().inserted(11, ours(9, (PROVIDER, "CallTiming"), 1, times))
}
